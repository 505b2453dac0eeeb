package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
)

// Returns the work of a WebSocket scenario: it sends a message to an echo server and receives it, over a connection
// that no other goroutine uses, or over a new one if it leaves them idle.
func webSocket(isIdle bool) func() (bool, error) {
	content, err := os.ReadFile(values["file"])
	check(err)
	kind, messages := websocket.BinaryMessage, [][]byte{content}
	if values["kind"] != "binary" {
		kind, messages = websocket.TextMessage, bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	}
	dialer := websocket.Dialer{EnableCompression: values["deflate"] != ""}
	var mutex sync.Mutex
	var free []*websocket.Conn
	count, hosts := 0, number("hosts", 1)
	return func() (bool, error) {
		var connection *websocket.Conn
		mutex.Lock()
		count++
		index := count
		if last := len(free) - 1; last >= 0 && !isIdle {
			connection, free = free[last], free[:last]
		}
		mutex.Unlock()
		if connection == nil {
			host := fmt.Sprintf("127.0.0.%d", 1+index%hosts)
			var err error
			if connection, _, err = dialer.Dial(strings.Replace(url, "127.0.0.1", host, 1), nil); err != nil {
				return false, err
			}
		}
		message := messages[index%len(messages)]
		if err := connection.WriteMessage(kind, message); err != nil {
			return false, err
		}
		replyKind, reply, err := connection.ReadMessage()
		if err == nil && (replyKind != kind || len(reply) != len(message)) {
			err = errors.New("another message was returned")
		}
		mutex.Lock()
		free = append(free, connection)
		mutex.Unlock()
		return false, err
	}
}
