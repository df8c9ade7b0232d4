package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
)

// run is one measurement.
type run struct {
	*store
	*timing
	prefix    string
	rounds    int
	followers int
	elections int
	lasting   time.Duration
}

// bench takes one measure, prints it as one line, and ends.
func bench(measure string, args []string) {
	flags := flag.NewFlagSet("client-go bench", flag.ExitOnError)
	run := run{store: storeFlags(flags), timing: timingFlags(flags)}
	flags.StringVar(&run.prefix, "name", "bench", "what the names of Leases begin with")
	flags.IntVar(&run.rounds, "rounds", 20, "how often (acquire, handover, is-leader)")
	flags.IntVar(&run.followers, "followers", 1, "how many follow the leader (handover, requests)")
	flags.IntVar(&run.elections, "elections", 1000, "how many are held by this process (many)")
	flags.DurationVar(&run.lasting, "for", 20*time.Second, "how long (requests, many)")
	flags.Parse(args)
	measures := map[string]func() map[string]any{
		"acquire":   run.acquire,
		"handover":  run.handover,
		"requests":  run.steady,
		"many":      run.many,
		"is-leader": run.isLeader,
	}
	take, found := measures[measure]
	if !found {
		check(fmt.Errorf("there is no measure %q", measure))
	}
	line := take()
	line["measure"] = measure
	say(line)
}

// candidate runs in a goroutine of its own until it is cancelled.
type candidate struct {
	elector *leaderelection.LeaderElector
	cancel  context.CancelFunc
	ended   chan struct{}
}

// start lets a candidate stand; led gets the time at which it began to lead.
func (run *run) start(clients kubernetes.Interface, name, id string, led chan<- int64) *candidate {
	ctx, cancel := context.WithCancel(context.Background())
	callbacks := leaderelection.LeaderCallbacks{
		OnStartedLeading: func(context.Context) { led <- bootNow() },
		OnStoppedLeading: func() {},
	}
	candidate := &candidate{run.elector(clients, run.namespace, name, id, callbacks), cancel, make(chan struct{})}
	go func() {
		defer close(candidate.ended)
		candidate.elector.Run(ctx)
	}()
	return candidate
}

func (candidate *candidate) end() {
	candidate.cancel()
	<-candidate.ended
}

// acquire measures how long it takes to lead where nobody does, on a connection that is open.
func (run *run) acquire() map[string]any {
	clients := run.connect()
	_, err := clients.Discovery().ServerVersion()
	check(err)
	var nanos []int64
	for round := range run.rounds {
		led := make(chan int64, 1)
		start := bootNow()
		candidate := run.start(clients, fmt.Sprintf("%s-%d", run.prefix, round), "a", led)
		nanos = append(nanos, <-led-start)
		candidate.end()
	}
	return map[string]any{"nanos": nanos}
}

// handover measures from the cancellation of a leader, which releases, to the next one that leads.
func (run *run) handover() map[string]any {
	run.releaseOnCancel = true
	led := make(chan int64, 1)
	stand := func(number int) *candidate { return run.start(run.connect(), run.prefix, strconv.Itoa(number), led) }
	leader := stand(0)
	<-led
	var others []*candidate
	for number := range run.followers {
		others = append(others, stand(number+1))
	}
	// Everybody has seen the leader by now.
	time.Sleep(2 * run.retryPeriod)
	var nanos []int64
	for round := range run.rounds {
		start := bootNow()
		leader.end()
		nanos = append(nanos, <-led-start)
		for at, other := range others {
			if other.elector.IsLeader() {
				leader, others[at] = other, stand(run.followers+1+round)
				break
			}
		}
		// The newcomer is at a random place of its period, as all others are.
		time.Sleep(run.retryPeriod + time.Duration(round%10)*run.retryPeriod/10)
	}
	return map[string]any{"nanos": nanos, "followers": run.followers}
}

// steady counts what one leader and its followers ask for while nothing changes.
func (run *run) steady() map[string]any {
	led := make(chan int64, 1)
	run.start(run.connect(), run.prefix, "leader", led)
	<-led
	for number := range run.followers {
		run.start(run.connect(), run.prefix, strconv.Itoa(number), led)
	}
	time.Sleep(2 * run.retryPeriod)
	return run.counted(map[string]any{"followers": run.followers})
}

// many holds elections of one candidate each on one client.
func (run *run) many() map[string]any {
	clients := run.connect()
	led := make(chan int64, run.elections)
	for number := range run.elections {
		run.start(clients, fmt.Sprintf("%s-%d", run.prefix, number), "a", led)
	}
	for range run.elections {
		<-led
	}
	return run.counted(map[string]any{"elections": run.elections})
}

// counted lets time pass, and adds what that cost.
func (run *run) counted(line map[string]any) map[string]any {
	start, requests, cpu := bootNow(), run.requests.Load(), cpuTime()
	time.Sleep(run.lasting)
	line["requests"] = run.requests.Load() - requests
	line["cpu_nanos"] = cpuTime() - cpu
	line["lasted_nanos"] = since(start)
	line["resident_bytes"] = residentBytes()
	return line
}

// isLeader measures one call, in batches.
func (run *run) isLeader() map[string]any {
	const batch = 1_000_000
	led := make(chan int64, 1)
	candidate := run.start(run.connect(), run.prefix, "a", led)
	<-led
	var nanos []float64
	for range run.rounds {
		start := bootNow()
		for range batch {
			if !candidate.elector.IsLeader() {
				check(fmt.Errorf("the leadership was lost"))
			}
		}
		nanos = append(nanos, float64(since(start))/batch)
	}
	candidate.end()
	return map[string]any{"nanos": nanos}
}

func cpuTime() int64 {
	var usage unix.Rusage
	check(unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func residentBytes() int {
	text, err := os.ReadFile("/proc/self/statm")
	check(err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	check(err)
	return pages * os.Getpagesize()
}
