// Oracle answers questions about the small languages of rules with the Go libraries that the reference agent uses.
//
//	oracle template|cel|path    one JSON question per line on stdin, one JSON answer per line on stdout, in order
//	oracle bench                ns per operation of the work that the Rust benchmarks do, one JSON object per line
//
// The lines are those of `carrick toolkit … --batch`.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// answer is what one question gets: the output, the result or the error.
type answer map[string]any

func main() {
	questions := map[string]func([]byte) (answer, error){
		"template": answerTemplate,
		"cel":      answerCEL,
		"path":     answerPath,
	}
	if len(os.Args) == 2 && os.Args[1] == "bench" {
		if err := bench(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "oracle:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) != 2 || questions[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: oracle template|cel|path|bench")
		os.Exit(2)
	}
	if err := serve(os.Stdin, os.Stdout, questions[os.Args[1]]); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// serve answers every line, and flushes whenever no further question is waiting.
func serve(in io.Reader, out io.Writer, ask func([]byte) (answer, error)) error {
	reader, writer := bufio.NewReaderSize(in, 1<<16), bufio.NewWriterSize(out, 1<<16)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			if err := encoder.Encode(safely(line, ask)); err != nil {
				return err
			}
			if reader.Buffered() == 0 {
				if err := writer.Flush(); err != nil {
					return err
				}
			}
		}
		if err == io.EOF {
			return writer.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// safely turns errors and panics of the libraries into answers.
func safely(line []byte, ask func([]byte) (answer, error)) (given answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			given = answer{"error": fmt.Sprint("panic: ", panicked)}
		}
	}()
	given, err := ask(line)
	if err != nil {
		return answer{"error": err.Error()}
	}
	return given
}
