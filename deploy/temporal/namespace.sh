#!/bin/sh
# Makes the Temporal namespace if it is missing, and registers Engram's search attributes.
# May run any number of times. Reads TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and RETENTION,
# and whatever else the temporal CLI reads (TEMPORAL_API_KEY, TEMPORAL_TLS_...).
set -eu

attributes="EngramUser EngramSession EngramStage"

tries=30
until temporal operator cluster health >/dev/null 2>&1; do
    tries=$((tries - 1))
    if [ "$tries" -eq 0 ]; then
        echo "Temporal does not answer at $TEMPORAL_ADDRESS." >&2
        exit 1
    fi
    sleep 2
done

if ! temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
    temporal operator namespace create \
        --namespace "$TEMPORAL_NAMESPACE" --retention "${RETENTION:-90d}"
fi

# A namespace that was made a moment ago is not known everywhere at once.
tries=30
until registered=$(temporal operator search-attribute list 2>/dev/null); do
    tries=$((tries - 1))
    if [ "$tries" -eq 0 ]; then
        echo "The search attributes of $TEMPORAL_NAMESPACE cannot be listed." >&2
        exit 1
    fi
    sleep 2
done
for attribute in $attributes; do
    if ! echo "$registered" | grep -qw "$attribute"; then
        temporal operator search-attribute create --name "$attribute" --type Keyword
    fi
done
