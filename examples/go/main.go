// A Temporal application in Go with memory: as updates of a session's workflow, through Nexus from a
// workflow of its own, and over HTTP. Everything that passes Temporal is encrypted.
//
//	ENGRAM_NEXUS_ENDPOINT=engram ENGRAM_TEMPORAL_PORT=7233 engram up
//	engram codec --address-file ~/codec.address   # beside it; the address is as good as the keys
//	export ENGRAM_CODEC=$(cat ~/codec.address)
//	export ENGRAM_API_KEY=$(engram keys create go --access write)
//	go run . ada "I live in Porto." "Where do I live?"
//
// It needs no keys: the codec has them, and encodes for one workflow each. A turn that is sent
// twice, by this program or by others, is kept once.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	taskQueue = "engram-go"
	sessionID = "examples"
)

// Turn is one utterance of a conversation.
type Turn struct {
	Role      string    `json:"role"`
	Content   string    `json:"content"`
	MessageID string    `json:"message_id"`
	Timestamp time.Time `json:"timestamp"`
}

// said makes a turn of the user's words. A program has ids of its messages; here the same words
// are the same message.
func said(text string) Turn {
	digest := sha256.Sum256([]byte(text))
	return Turn{Role: "user", Content: text, MessageID: hex.EncodeToString(digest[:8]), Timestamp: time.Now().UTC()}
}

// Scope is whose memory is meant.
type Scope struct {
	Namespace string `json:"namespace"`
	UserID    string `json:"user_id"`
}

// SessionState is what a session's workflow is started with: docs/workflows.json has the schemas.
type SessionState struct {
	Scope     Scope  `json:"scope"`
	SessionID string `json:"session_id"`
}

// EncodeRequest is what its update "encode" takes.
type EncodeRequest struct {
	Calls []EncodeCall `json:"calls"`
}

// EncodeCall has turns of which all are stored, or none.
type EncodeCall struct {
	Turns []Turn `json:"turns"`
}

// EncodeReply is what the update answers, as far as it is read here: one outcome for each call.
type EncodeReply struct {
	Outcomes []struct {
		Turns []struct {
			EpisodeID string `json:"episode_id"`
		} `json:"turns"`
		Error map[string]any `json:"error"`
	} `json:"outcomes"`
}

// EncodeArgs is what the operation "encode" takes.
type EncodeArgs struct {
	UserID    string `json:"user_id"`
	SessionID string `json:"session_id"`
	Turns     []Turn `json:"turns"`
}

// Receipt is what it answers, as far as it is read here.
type Receipt struct {
	EpisodeIDs []string `json:"episode_ids"`
}

// RecallArgs is what the operation "recall" takes.
type RecallArgs struct {
	UserID  string         `json:"user_id"`
	Query   string         `json:"query"`
	Options map[string]any `json:"options"`
}

// Hit is an answer to a question, as far as it is read here.
type Hit struct {
	Memory struct {
		ID      string `json:"id"`
		Content string `json:"content"`
	} `json:"memory"`
}

// Recalled is what "recall" answers.
type Recalled struct {
	Hits []Hit `json:"hits"`
}

// options are those of a client whose payloads the codec encodes for one workflow.
func options(codec, workflowID string) client.Options {
	remote := converter.NewRemoteDataConverter(
		converter.GetDefaultDataConverter(),
		converter.RemoteDataConverterOptions{
			Endpoint: strings.Replace(codec, "WORKFLOW-ID", url.PathEscape(workflowID), 1),
		},
	)
	encoded := workflow.DataConverterWithoutDeadlockDetection(remote)
	return client.Options{
		HostPort:      setting("TEMPORAL_ADDRESS", "127.0.0.1:7233"),
		Namespace:     setting("TEMPORAL_NAMESPACE", "default"),
		DataConverter: encoded,
		FailureConverter: temporal.NewDefaultFailureConverter(
			temporal.DefaultFailureConverterOptions{DataConverter: encoded, EncodeCommonAttributes: true},
		),
	}
}

// keep stores a turn: it updates the session's workflow, and starts it where it does not run. The
// answer is the turn's id in memory.
func keep(codec, userID string, turn Turn) (string, error) {
	ctx := context.Background()
	tenant := "default/" + userID
	id := "session/" + tenant + "/" + sessionID
	server, err := client.Dial(options(codec, id))
	if err != nil {
		return "", err
	}
	defer server.Close()
	start := server.NewWithStartWorkflowOperation(
		client.StartWorkflowOptions{
			ID:                       id,
			TaskQueue:                "engram-store",
			WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			TypedSearchAttributes: temporal.NewSearchAttributes(
				temporal.NewSearchAttributeKeyKeyword("EngramUser").ValueSet(tenant),
				temporal.NewSearchAttributeKeyKeyword("EngramSession").ValueSet(sessionID),
				temporal.NewSearchAttributeKeyKeyword("EngramStage").ValueSet("session"),
			),
		},
		"engram.session",
		SessionState{Scope: Scope{Namespace: "default", UserID: userID}, SessionID: sessionID},
	)
	update, err := server.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID:   id,
			UpdateName:   "encode",
			Args:         []any{EncodeRequest{Calls: []EncodeCall{{Turns: []Turn{turn}}}}},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return "", err
	}
	var reply EncodeReply
	if err := update.Get(ctx, &reply); err != nil {
		return "", err
	}
	if refused := reply.Outcomes[0].Error; refused != nil {
		return "", fmt.Errorf("%v: %v", refused["code"], refused["message"])
	}
	return reply.Outcomes[0].Turns[0].EpisodeID, nil
}

// Remember keeps what a user says, and answers with what is remembered.
func Remember(ctx workflow.Context, endpoint, userID string, turn Turn, question string) (string, error) {
	memory := workflow.NewNexusClient(endpoint, "engram.memory")
	options := workflow.NexusOperationOptions{ScheduleToCloseTimeout: time.Minute}

	keeping := EncodeArgs{UserID: userID, SessionID: sessionID, Turns: []Turn{turn}}
	var receipt Receipt
	if err := memory.ExecuteOperation(ctx, "encode", keeping, options).Get(ctx, &receipt); err != nil {
		return "", err
	}
	asked := RecallArgs{UserID: userID, Query: question, Options: turnsOnly}
	var found Recalled
	if err := memory.ExecuteOperation(ctx, "recall", asked, options).Get(ctx, &found); err != nil {
		return "", err
	}
	return best(found.Hits)
}

// remember has the workflow above run, by a worker in this program.
func remember(codec, userID string, turn Turn, question string) (string, error) {
	// It is no workflow of Engram's: what it sends is bound to none, under the shared key.
	server, err := client.Dial(options(codec, "-"))
	if err != nil {
		return "", err
	}
	defer server.Close()
	works := worker.New(server, taskQueue, worker.Options{})
	works.RegisterWorkflow(Remember)
	if err := works.Start(); err != nil {
		return "", err
	}
	defer works.Stop()

	started, err := server.ExecuteWorkflow(
		context.Background(),
		client.StartWorkflowOptions{
			ID: "engram-go-" + uuid.NewString(), TaskQueue: taskQueue, WorkflowExecutionTimeout: 2 * time.Minute,
		},
		Remember, setting("ENGRAM_NEXUS_ENDPOINT", "engram"), userID, turn, question,
	)
	if err != nil {
		return "", err
	}
	var remembered string
	err = started.Get(context.Background(), &remembered)
	return remembered, err
}

// recall asks over HTTP.
func recall(base, key, userID, question string) (string, error) {
	body, err := json.Marshal(map[string]any{"query": question, "limit": 1, "memory_types": turnsOnly["memory_types"]})
	if err != nil {
		return "", err
	}
	address := fmt.Sprintf("%s/v1/namespaces/default/users/%s/recall", base, url.PathEscape(userID))
	request, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", response.Status, answer)
	}
	var hits []Hit
	if err := json.Unmarshal(answer, &hits); err != nil {
		return "", err
	}
	return best(hits)
}

// turnsOnly asks for what was said, not for what was concluded from it.
var turnsOnly = map[string]any{"limit": 1, "memory_types": []string{"episodic"}}

func best(hits []Hit) (string, error) {
	if len(hits) == 0 {
		return "", fmt.Errorf("nothing that answers this is remembered")
	}
	return hits[0].Memory.Content, nil
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func run(userID, text, question string) error {
	codec := os.Getenv("ENGRAM_CODEC")
	if !strings.Contains(codec, "WORKFLOW-ID") {
		return fmt.Errorf("ENGRAM_CODEC has to be the address that `engram codec` prints")
	}
	turn := said(text)
	kept, err := keep(codec, userID, turn)
	if err != nil {
		return err
	}
	fmt.Println("session:", kept)

	remembered, err := remember(codec, userID, turn, question)
	if err != nil {
		return err
	}
	fmt.Println("nexus:", remembered)

	remembered, err = recall(
		setting("ENGRAM_URL", "http://127.0.0.1:8745"), os.Getenv("ENGRAM_API_KEY"), userID, question,
	)
	if err != nil {
		return err
	}
	fmt.Println("http:", remembered)
	return nil
}

func main() {
	if len(os.Args) != 4 {
		log.Fatalln("usage: go run . USER TEXT QUESTION")
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatalln(err)
	}
}
