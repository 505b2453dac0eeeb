import MartletContent
import Foundation
import MartletTesting
import Testing

@Suite("Standard descriptors and signals of the program")
struct DescriptorTests {
    /// Runs a bash script, with the program as `$0` and an address as `$1`.
    private func script(
        _ text: String, _ url: String = "", in directory: TemporaryDirectory? = nil
    ) async throws -> Program.Run {
        try await Program.run("bash", ["-c", text, Program.path, url], input: [], in: directory)
    }

    @Test("Closed standard descriptors are not reused for pipes, sockets and files")
    func closed() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain) { _ in
            .text("\u{2}\u{f}body")
        } run: { origin in
            let saved = try await script(#""$0" -o file "$1" <&- >&- 2>&-"#, origin.url("/"), in: directory)
            #expect(saved.status == 0)
            #expect(OutputFile.contents(of: directory.appending("file")) == "\u{2}\u{f}body")
            // Each byte of a body in the signal pipe would count as the number of a signal.
            for closing in ["<&- >&-", ">&-", ">&- 2>&-"] {
                let run = try await script(#""$0" -s "$1" "# + closing, origin.url("/"))
                #expect(run.status == 23, "\(closing)")
            }
            let batch = try await script(#""$0" batch <&-"#)
            #expect(batch.status == 0)
        }
    }

    @Test("Child programs inherit only the standard descriptors")
    func inherited() async throws {
        let text = #"""
            coproc "$0" batch
            echo '{"seq":1,"op":"stats"}' >&${COPROC[1]}; read -r line <&${COPROC[0]}
            for file in /proc/$COPROC_PID/fd/*; do
              number=${file##*/}; target=$(readlink $file)
              [ $number -gt 2 ] || continue
              case $target in pipe:*|socket:*|anon_inode:*) ;; *) continue ;; esac
              [ "$target" = "$(readlink /proc/$$/fd/$number)" ] && continue
              flags=$(sed -n 's/^flags:[^0-9]*//p' /proc/$COPROC_PID/fdinfo/$number)
              (( 8#$flags & 8#2000000 )) || echo "$number $target"
            done
            """#
        let run = try await script(text)
        #expect(run.text == "", "\(run.errors)")
    }

    @Test("A signal that was ignored at the start of the program stays ignored")
    func ignoredSignal() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let rest = Gate()
        try await TestOrigin.withOrigin(.plain) { _ in
            OriginResponse(
                body: .stream(length: 2) { writer in
                    try await writer.write([65])
                    await rest.pass()
                    try await writer.write([66])
                })
        } run: { origin in
            defer { rest.open() }
            let text = #"trap "" INT; "$0" -s -o file "$1" & p=$!; until [ -s file ]; do sleep 0.01; done; "#
            let words = ["-c", text + "kill -INT $p; touch sent; wait $p", Program.path, origin.url("/")]
            let run = try await Program.run("bash", words, input: [], in: directory) { running in
                try await running.child.wait(for: "the signal") {
                    FileManager.default.fileExists(atPath: directory.appending("sent"))
                }
                rest.open()
            }
            #expect(run.status == 0)
            #expect(OutputFile.contents(of: directory.appending("file")) == "AB")
        }
    }

    @Test(
        "Output that cannot be written exits with 23",
        arguments: ["--help", "--version", "manual", "get --help", "cache --help"])
    func fullDevice(_ words: String) async throws {
        #expect(try await script("\"$0\" \(words) >/dev/full").status == 23)
    }

    @Test("A stopped reader of standard output does not stop transfers to files")
    func stoppedReader() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            let text = #"""
                "$0" -sZ -o a "$1" -o b "$1" "$1" -w '%{stderr}%{urlnum}\n' 2>told | {
                  until [ "$(grep -c . told)" = 2 ]; do sleep 0.01; done
                  wc -c <a; wc -c <b; wc -c
                }
                """#
            let run = try await script(text, origin.url("/bytes/1000000"), in: directory)
            #expect(run.text.split(whereSeparator: \.isWhitespace) == ["1000000", "1000000", "1000000"])
        }
    }

    @Test("A mistyped command is an error that names the intended one")
    func mistyped() async throws {
        let run = try await Program.run("downlaod", "http://127.0.0.1:1/")
        #expect(run.status == 2 && run.errors.contains("“download”"), "\(run.errors)")
    }

    @Test("A password that a later one replaces is hidden as well")
    func replacedPassword() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let rest = Gate()
        try await TestOrigin.withOrigin(.plain) { _ in
            await rest.pass()
            return .text("done")
        } run: { origin in
            defer { rest.open() }
            let text =
                #""$0" -s -u me:first -u me:second -x "" -b c=third -H "Cookie: d=fourth" "$1" & p=$!;"#
                + #" while tr "\0" " " </proc/$p/cmdline | grep -q second; do sleep 0.01; done; cat /proc/$p/cmdline; touch seen; wait $p"#
            let run = try await Program.run(
                "bash", ["-c", text, Program.path, origin.url("/")], input: [], in: directory
            ) {
                try await $0.child.wait(for: "the title") {
                    FileManager.default.fileExists(atPath: directory.appending("seen"))
                }
                rest.open()
            }
            for secret in ["first", "second", "third", "fourth"] {
                #expect(!run.text.contains(secret), "\(run.text)")
            }
            #expect(run.text.contains("done"))
        }
    }

    @Test("batch decodes content codings on request, whatever headers the request has")
    func decompress() async throws {
        try await TestOrigin.withOrigin(.plain) { _ in
            OriginResponse(headers: ["Content-Encoding": "gzip"], body: .text("none"))
        } run: { origin in
            let fields = #","headers":[["Accept-Encoding","gzip"]]}"#
            let replies = try await Program.batch(
                ["true", "false"].map {
                    #"{"seq":1,"op":"fetch","url":"\#(origin.url("/"))","decompress":\#($0)"# + fields
                }
                    + [#"{"seq":3,"op":"fetch","url":"\#(origin.url("/"))""# + fields], "--parallel", "1")
            #expect(replies.map(\.error) == ["decode", nil, nil])
        }
    }
}
