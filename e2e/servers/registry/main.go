// A registry of images and charts in memory, on loopback, for tests: prints its address and serves until its standard input ends.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	os.Stdout.Close()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	quiet := log.New(io.Discard, "", 0)
	log.Fatal(http.Serve(listener, registry.New(registry.Logger(quiet))))
}
