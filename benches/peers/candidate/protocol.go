package candidate

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// say prints one event line, with the time at which it is called: nanoseconds of CLOCK_BOOTTIME, as in the lines of the other candidates.
func say(event string, fields map[string]any) {
	line := map[string]any{"event": event, "boot_ns": bootNow()}
	for name, value := range fields {
		line[name] = value
	}
	text, err := json.Marshal(line)
	check(err)
	// One write a line: lines of several goroutines never mix.
	os.Stdout.Write(append(text, '\n'))
}

func bootNow() int64 {
	var now unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_BOOTTIME, &now))
	return now.Nano()
}

// version is that of the library which this program is made of.
func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, used := range info.Deps {
		if used.Path == module {
			return used.Version
		}
	}
	return "of unknown version"
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "candidate:", err)
		os.Exit(1)
	}
}
