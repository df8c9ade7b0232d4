// A node of a cluster made of hashicorp/raft, as it is published, with raft-boltdb as its log and the defaults of both: elections of the
// cluster's own leader, which is all that the library elects.
//
//	hashicorp-raft node --id N --at ADDRESS --peers ADDRESS,… --dir DIR   a node, until it is killed
//	hashicorp-raft --version                                              which library this is
//
// A node that leads writes one entry at once, and says `written` when a majority has it on disk. SIGTERM hands the leadership over, and is
// no end.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"golang.org/x/sys/unix"
)

// As long as a write of the benchmark is.
const bytes = 264

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("hashicorp/raft", version())
		return
	}
	flags := flag.NewFlagSet("hashicorp-raft", flag.ExitOnError)
	id := flags.Int("id", 0, "the number of this node among the peers")
	at := flags.String("at", "", "where it listens")
	peers := flags.String("peers", "", "all nodes, separated by commas")
	dir := flags.String("dir", "", "where it keeps its log")
	check(flags.Parse(os.Args[2:]))
	run(*id, *at, strings.Split(*peers, ","), *dir)
}

func run(id int, at string, peers []string, dir string) {
	check(os.MkdirAll(dir, 0o700))
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(fmt.Sprint(id))
	config.Logger = hclog.NewNullLogger()
	log, err := raftboltdb.NewBoltStore(filepath.Join(dir, "log"))
	check(err)
	snapshots, err := raft.NewFileSnapshotStore(dir, 2, io.Discard)
	check(err)
	transport, err := raft.NewTCPTransport(at, nil, 3, 10*time.Second, io.Discard)
	check(err)
	known, err := raft.HasExistingState(log, log, snapshots)
	check(err)
	node, err := raft.NewRaft(config, nothing{}, log, log, snapshots, transport)
	check(err)
	if !known {
		var servers []raft.Server
		for number, peer := range peers {
			servers = append(servers, raft.Server{ID: raft.ServerID(fmt.Sprint(number)), Address: raft.ServerAddress(peer)})
		}
		check(node.BootstrapCluster(raft.Configuration{Servers: servers}).Error())
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	say("campaigning")
	for {
		select {
		case leads := <-node.LeaderCh():
			if !leads {
				say("stopped_leading")
				continue
			}
			say("started_leading")
			if node.Apply(make([]byte, bytes), 0).Error() == nil {
				say("written")
			}
		case <-terminated:
			say("stopping")
			check(node.LeadershipTransfer().Error())
		}
	}
}

// nothing is a state machine that forgets.
type nothing struct{}

func (nothing) Apply(*raft.Log) any                  { return nil }
func (nothing) Snapshot() (raft.FSMSnapshot, error)  { return nothing{}, nil }
func (nothing) Restore(from io.ReadCloser) error     { return from.Close() }
func (nothing) Persist(sink raft.SnapshotSink) error { return sink.Close() }
func (nothing) Release()                             {}

func say(event string) {
	var now unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_BOOTTIME, &now))
	text, err := json.Marshal(map[string]any{"event": event, "boot_ns": now.Nano()})
	check(err)
	os.Stdout.Write(append(text, '\n'))
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, used := range info.Deps {
		if used.Path == "github.com/hashicorp/raft" {
			return used.Version
		}
	}
	return "of unknown version"
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "hashicorp-raft:", err)
		os.Exit(1)
	}
}
