// Go's net/http, and gorilla/websocket for a URL with the scheme ws, as contenders: SCENARIO URL [NAME=VALUE ...]. It
// prints one line of JSON, like the others.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

var client *http.Client
var url string
var values = map[string]string{}

type comment struct {
	ID     int    `json:"id"`
	Author string `json:"author"`
	Text   string `json:"text"`
}

type article struct {
	ID       int       `json:"id"`
	Title    string    `json:"title"`
	Text     string    `json:"text"`
	Tags     []string  `json:"tags"`
	Rating   float64   `json:"rating"`
	IsPublic bool      `json:"isPublic"`
	Comments []comment `json:"comments"`
}

type outcome struct {
	Count     int            `json:"count"`
	Resumed   int            `json:"resumed"`
	Total     int            `json:"total"`
	Bytes     int64          `json:"bytes"`
	Seconds   float64        `json:"seconds"`
	CPU       float64        `json:"cpu"`
	Mallocs   uint64         `json:"mallocs"`
	Histogram map[string]int `json:"histogram,omitempty"`
}

func number(name string, preset int) int {
	if value, err := strconv.Atoi(values[name]); err == nil {
		return value
	}
	return preset
}

func seconds(name string, preset float64) float64 {
	if value, err := strconv.ParseFloat(values[name], 64); err == nil {
		return value
	}
	return preset
}

func cpu() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) * 1e-9
}

func check(err error) {
	if err != nil {
		fmt.Println("go-contender:", err)
		os.Exit(1)
	}
}

func fetch() (*http.Response, error) {
	response, err := client.Get(url)
	if err == nil && response.StatusCode/100 != 2 {
		err = errors.New(response.Status)
	}
	return response, err
}

func get() (bool, error) {
	response, err := fetch()
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return len(body) > 0 && body[0] == 'r', err
}

func decode() (bool, error) {
	response, err := fetch()
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return false, err
	}
	var value article
	return false, json.Unmarshal(body, &value)
}

// Runs work in one goroutine per connection; returns the number of requests, and of those on a resumed session.
func rush(work func() (bool, error), duration float64, limit int) (int, int) {
	var group sync.WaitGroup
	var mutex sync.Mutex
	count, resumed := 0, 0
	end := time.Now().Add(time.Duration(duration * 1e9))
	for i := 0; i < number("connections", 1); i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			own, ownResumed := 0, 0
			for own < limit && time.Now().Before(end) {
				isResumed, err := work()
				check(err)
				own++
				if isResumed {
					ownResumed++
				}
			}
			mutex.Lock()
			defer mutex.Unlock()
			count += own
			resumed += ownResumed
		}()
	}
	group.Wait()
	return count, resumed
}

// Uses the bucket numbers of the histogram of the contenders in Swift.
func bucket(value uint64) int {
	shift := bits.Len64(value) - 8
	if shift < 0 {
		shift = 0
	}
	return shift*128 + int(value>>shift)
}

func pace(duration float64) (int, map[string]int) {
	var group sync.WaitGroup
	var mutex sync.Mutex
	count := 0
	histogram := map[string]int{}
	connections := number("connections", 1)
	interval := time.Duration(float64(connections) / float64(number("rate", 1000)) * 1e9)
	begin := time.Now()
	end := begin.Add(time.Duration(duration * 1e9))
	for i := 0; i < connections; i++ {
		group.Add(1)
		due := begin.Add(interval * time.Duration(i) / time.Duration(connections))
		go func() {
			defer group.Done()
			own := map[int]int{}
			for ; due.Before(end); due = due.Add(interval) {
				start := due
				if wait := time.Until(due); wait > 0 {
					time.Sleep(wait)
					start = time.Now()
				}
				_, err := get()
				check(err)
				own[bucket(uint64(time.Since(start).Nanoseconds()))]++
			}
			mutex.Lock()
			defer mutex.Unlock()
			for key, value := range own {
				histogram[strconv.Itoa(key)] += value
				count += value
			}
		}()
	}
	group.Wait()
	return count, histogram
}

func discard() (int64, error) {
	response, err := fetch()
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}

func save() (int64, error) {
	response, err := fetch()
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	file, err := os.Create(values["file"])
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return io.Copy(file, response.Body)
}

func upload() (int64, error) {
	file, err := os.Open(values["file"])
	if err != nil {
		return 0, err
	}
	defer file.Close()
	information, err := file.Stat()
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequest(http.MethodPut, url, file)
	if err != nil {
		return 0, err
	}
	request.ContentLength = information.Size()
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return 0, errors.New(response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return information.Size(), err
}

func pause(line string, input *bufio.Reader) {
	fmt.Println(line)
	_, _ = input.ReadString('\n')
}

func idle(work func() (bool, error)) {
	input := bufio.NewReader(os.Stdin)
	_, err := work()
	check(err)
	pause("ready", input)
	count, _ := rush(work, 600, number("each", 1))
	pause(fmt.Sprintf("open %d", count), input)
	debug.FreeOSMemory()
	pause("trimmed", input)
}

func main() {
	if len(os.Args) < 3 {
		check(errors.New("usage: SCENARIO URL [NAME=VALUE ...]"))
	}
	scenario := os.Args[1]
	url = os.Args[2]
	for _, word := range os.Args[3:] {
		name, value, _ := strings.Cut(word, "=")
		values[name] = value
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	connections := number("connections", 1)
	transport.MaxConnsPerHost = connections
	transport.MaxIdleConns = connections
	transport.MaxIdleConnsPerHost = connections
	if path := values["authority"]; path != "" {
		pem, err := os.ReadFile(path)
		check(err)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	}
	client = &http.Client{Transport: transport}

	work := get
	if strings.HasPrefix(url, "ws:") {
		work = webSocket(scenario == "idle")
	}
	if scenario == "idle" {
		idle(work)
		return
	}
	if scenario == "decode" {
		work = decode
	}
	var result outcome
	if scenario == "pace" {
		result.Total, _ = rush(get, 0.2, 1<<62)
	} else if warm := seconds("warm", 0); warm > 0 {
		result.Total, _ = rush(work, warm, 1<<62)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	mallocs := memory.Mallocs
	used := cpu()
	start := time.Now()
	switch scenario {
	case "get", "decode":
		if count := number("count", 0); count > 0 {
			result.Count, result.Resumed = rush(work, 600, count/connections)
		} else {
			result.Count, result.Resumed = rush(work, seconds("seconds", 1), 1<<62)
		}
	case "pace":
		result.Count, result.Histogram = pace(seconds("seconds", 1))
	case "discard", "save", "upload":
		transfer := map[string]func() (int64, error){"discard": discard, "save": save, "upload": upload}[scenario]
		for i := 0; i < number("count", 1); i++ {
			bytes, err := transfer()
			check(err)
			result.Bytes += bytes
			result.Count++
		}
	default:
		check(errors.New("unsupported scenario"))
	}
	result.Seconds = time.Since(start).Seconds()
	result.CPU = cpu() - used
	runtime.ReadMemStats(&memory)
	result.Mallocs = memory.Mallocs - mallocs
	result.Total += result.Count
	line, err := json.Marshal(result)
	check(err)
	fmt.Println(string(line))
}
