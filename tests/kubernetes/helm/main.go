// Helm as it is released, built from source for the tests, which render the chart with it.
//
// The version is that of helm.sh/helm/v4 in go.mod; `cargo xtask` builds it once and keeps it outside of every checkout. The modules
// of Kubernetes are those of kube-apiserver, so that most packages are compiled already.
package main

import (
	"fmt"
	"os"

	"helm.sh/helm/v4/pkg/cmd"
)

func main() {
	root, err := cmd.NewRootCmd(os.Stdout, os.Args[1:], cmd.SetupLogging)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if root.Execute() != nil {
		os.Exit(1)
	}
}
