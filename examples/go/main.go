// A Temporal application in Go with memory: through Nexus in a workflow, and over HTTP.
//
//	ENGRAM_NEXUS_ENDPOINT=engram ENGRAM_NEXUS_PLAIN=true ENGRAM_TEMPORAL_PORT=7233 engram up
//	export ENGRAM_API_KEY=$(engram keys create go --access write)
//	go run . ada "I live in Porto."
//
// The workflow asks the Nexus service "engram.memory" with small JSON objects. Nexus asks again when
// a handler dies, and nothing is kept twice. What has to be encrypted goes over HTTP instead: a
// caller at a plain endpoint has what it sends and is answered readable in its own history.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const taskQueue = "engram-go"

// Turn is one utterance of a conversation.
type Turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
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

// Remember keeps what a user says, and answers with what is remembered about it.
func Remember(ctx workflow.Context, endpoint, userID, text string) (string, error) {
	memory := workflow.NewNexusClient(endpoint, "engram.memory")
	options := workflow.NexusOperationOptions{ScheduleToCloseTimeout: time.Minute}

	said := EncodeArgs{UserID: userID, SessionID: "go", Turns: []Turn{{Role: "user", Content: text}}}
	var receipt Receipt
	if err := memory.ExecuteOperation(ctx, "encode", said, options).Get(ctx, &receipt); err != nil {
		return "", err
	}
	asked := RecallArgs{UserID: userID, Query: text, Options: map[string]any{"limit": 1}}
	var found Recalled
	if err := memory.ExecuteOperation(ctx, "recall", asked, options).Get(ctx, &found); err != nil {
		return "", err
	}
	return found.Hits[0].Memory.Content, nil
}

// recall asks over HTTP.
func recall(base, key, userID, text string) (string, error) {
	body, err := json.Marshal(map[string]any{"query": text, "limit": 1})
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
	return hits[0].Memory.Content, nil
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func run(userID, text string) error {
	temporal, err := client.Dial(client.Options{
		HostPort:  setting("TEMPORAL_ADDRESS", "127.0.0.1:7233"),
		Namespace: setting("TEMPORAL_NAMESPACE", "default"),
	})
	if err != nil {
		return err
	}
	defer temporal.Close()
	works := worker.New(temporal, taskQueue, worker.Options{})
	works.RegisterWorkflow(Remember)
	if err := works.Start(); err != nil {
		return err
	}
	defer works.Stop()

	started, err := temporal.ExecuteWorkflow(
		context.Background(),
		client.StartWorkflowOptions{
			ID: "engram-go-" + uuid.NewString(), TaskQueue: taskQueue, WorkflowExecutionTimeout: 2 * time.Minute,
		},
		Remember, setting("ENGRAM_NEXUS_ENDPOINT", "engram"), userID, text,
	)
	if err != nil {
		return err
	}
	var remembered string
	if err := started.Get(context.Background(), &remembered); err != nil {
		return err
	}
	fmt.Println("nexus:", remembered)

	remembered, err = recall(
		setting("ENGRAM_URL", "http://127.0.0.1:8745"), os.Getenv("ENGRAM_API_KEY"), userID, text,
	)
	if err != nil {
		return err
	}
	fmt.Println("http:", remembered)
	return nil
}

func main() {
	if len(os.Args) != 3 {
		log.Fatalln("usage: go run . USER TEXT")
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatalln(err)
	}
}
