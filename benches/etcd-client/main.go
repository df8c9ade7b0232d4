// Clients of etcd, made of its own client library, for benchmarks that measure it beside Raft of this project.
//
//	etcd-client put FLAGS        writes for a while, with many clients at once
//	etcd-client until FLAGS      waits for a line on stdin, then for the first write that every (or any) endpoint answers
//	etcd-client transfer FLAGS   hands the leadership over, and writes at the new leader
//	etcd-client handover FLAGS   hands an election over, from candidate to candidate
//	etcd-client leader FLAGS     the endpoint of the leader that all endpoints agree on
//	etcd-client --version        which client library this is
//
// Each prints one line of JSON. Times are nanoseconds; instants are of CLOCK_BOOTTIME, as those of the benchmarks.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// Between two attempts at what does not work yet: short beside what is measured.
const pause = 5 * time.Millisecond

// How long one write may take that is made to find out whether there is a leader. etcd answers one that it dropped after 7 seconds.
const attempt = 200 * time.Millisecond

// The longest that anything may take.
const patience = 60 * time.Second

type flags struct {
	endpoints []string
	clients   int
	lasting   time.Duration
	writes    int64
	bytes     int
	keys      int
	rounds    int
	any       bool
}

func main() {
	args := os.Args[1:]
	if len(args) == 1 && args[0] == "--version" {
		fmt.Println("etcd client", version())
		return
	}
	measures := map[string]func(*flags) map[string]any{
		"put": put, "until": until, "transfer": transfer, "handover": handover, "leader": leader,
	}
	var measure func(*flags) map[string]any
	if len(args) > 0 {
		measure = measures[args[0]]
	}
	if measure == nil {
		check(fmt.Errorf("there is no such measure: %v", args))
	}
	line, err := json.Marshal(measure(parse(args[1:])))
	check(err)
	fmt.Println(string(line))
}

func parse(args []string) *flags {
	set := flag.NewFlagSet("etcd-client", flag.ExitOnError)
	var flags flags
	endpoints := set.String("endpoints", "", "URLs of members, separated by commas")
	set.IntVar(&flags.clients, "clients", 1, "how many write at once, each on a connection of its own (put)")
	set.DurationVar(&flags.lasting, "for", 3*time.Second, "how long (put)")
	set.Int64Var(&flags.writes, "writes", math.MaxInt64, "no more than this many (put)")
	set.IntVar(&flags.bytes, "value-bytes", 256, "the length of a value (put)")
	set.IntVar(&flags.keys, "keys", 10_000, "how many keys are written, one after the other (put)")
	set.IntVar(&flags.rounds, "rounds", 15, "how often (transfer, handover)")
	set.BoolVar(&flags.any, "any", false, "until any endpoint answers, in place of all (until)")
	check(set.Parse(args))
	flags.endpoints = strings.Split(*endpoints, ",")
	return &flags
}

// connect returns a client of these endpoints. A member that comes up is found again at once.
func connect(endpoints ...string) *clientv3.Client {
	soon := backoff.Config{BaseDelay: pause, Multiplier: 1, MaxDelay: pause}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   endpoints,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon})},
		Logger:      zap.NewNop(),
	})
	check(err)
	return client
}

// leader asks all endpoints until they agree.
func leader(flags *flags) map[string]any {
	client := connect(flags.endpoints...)
	defer client.Close()
	by := time.Now().Add(patience)
	for time.Now().Before(by) {
		if endpoint, _ := agreed(client, flags.endpoints); endpoint != "" {
			return map[string]any{"leader": endpoint}
		}
		time.Sleep(pause)
	}
	check(fmt.Errorf("%v agree on no leader within %v", flags.endpoints, patience))
	return nil
}

// agreed returns the leader's endpoint, if all endpoints name the same, and the members by endpoint.
func agreed(client *clientv3.Client, endpoints []string) (string, map[string]uint64) {
	members, at, leaders := map[string]uint64{}, "", map[uint64]bool{}
	for _, endpoint := range endpoints {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		status, err := client.Status(ctx, endpoint)
		cancel()
		if err != nil {
			return "", nil
		}
		members[endpoint] = status.Header.MemberId
		leaders[status.Leader] = true
		if status.Leader == status.Header.MemberId {
			at = endpoint
		}
	}
	if len(leaders) != 1 {
		return "", nil
	}
	return at, members
}

// until tells when every endpoint, or any of them, has answered a write that was begun after the line on stdin. A write may be lost
// with a leader, and its client would wait for long: so another begins every few milliseconds, and the first that is answered counts.
func until(flags *flags) map[string]any {
	clients := make([]*clientv3.Client, len(flags.endpoints))
	for i, endpoint := range flags.endpoints {
		clients[i] = connect(endpoint)
	}
	fmt.Fprintln(os.Stderr, "connected")
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	check(err)
	answered := make(chan int64, len(clients))
	for _, client := range clients {
		go func() { answered <- firstAnswer(client) }()
	}
	at := <-answered
	for range clients[1:] {
		if !flags.any {
			at = max(at, <-answered)
		}
	}
	return map[string]any{"boot_ns": at}
}

func firstAnswer(client *clientv3.Client) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answered := make(chan int64, 1)
	write := func() {
		within, cancel := context.WithTimeout(ctx, attempt)
		defer cancel()
		if _, err := client.Put(within, "until", "now"); err == nil {
			select {
			case answered <- bootNow():
			default:
			}
		}
	}
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case at := <-answered:
			return at
		case <-ctx.Done():
			check(fmt.Errorf("no write was answered within %v", patience))
		case <-ticker.C:
			go write()
		}
	}
}

// transfer measures from the call to the first write that the new leader has answered.
func transfer(flags *flags) map[string]any {
	clients := map[string]*clientv3.Client{}
	for _, endpoint := range flags.endpoints {
		clients[endpoint] = connect(endpoint)
		put := func() error { _, err := clients[endpoint].Put(context.Background(), "transfer", "begin"); return err }
		check(put())
	}
	nanos := []int64{}
	for len(nanos) < flags.rounds {
		from, members := agreed(clients[flags.endpoints[0]], flags.endpoints)
		if from == "" {
			time.Sleep(pause)
			continue
		}
		to := flags.endpoints[0]
		if to == from {
			to = flags.endpoints[1]
		}
		begin := bootNow()
		_, err := clients[from].MoveLeader(context.Background(), members[to])
		check(err)
		_, err = clients[to].Put(context.Background(), "transfer", "done")
		check(err)
		nanos = append(nanos, bootNow()-begin)
	}
	return map[string]any{"nanos": nanos}
}

func bootNow() int64 {
	var now unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_BOOTTIME, &now))
	return now.Nano()
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "go.etcd.io/etcd/client/v3" {
			return module.Version
		}
	}
	return "of unknown version"
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd-client:", err)
		os.Exit(1)
	}
}
