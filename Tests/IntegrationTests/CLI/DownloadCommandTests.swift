import MartletCredentials
import MartletContent
import Foundation
import MartletTesting
import Testing

@Suite("martlet download")
struct DownloadCommandTests {
    @Test("A file has the name from its URL; standard output is empty, and standard error names the file")
    func file() async throws {
        try await DownloadScene.run { scene in
            let run = try await scene.download([scene.origin.url("/bytes/70000")])
            #expect(run.status == 0, "\(run.errors)")
            #expect(scene.bytes("70000") == DownloadScene.pattern(70_000))
            #expect(scene.names == ["70000"], "nothing else is left")
            #expect(run.output.isEmpty)
            #expect(run.errors.hasPrefix("70000: 68.3 KiB in "))
        }
    }

    @Test("--dir creates the directory; the directory of -o is created only with --create-dirs")
    func places() async throws {
        try await DownloadScene.run { scene in
            let url = scene.origin.url("/bytes/10")
            let created = try await scene.download(["--dir", "x/y", url])
            #expect(created.status == 0, "\(created.errors)")
            #expect(scene.bytes("x/y/10") == DownloadScene.pattern(10))
            let managed = try await scene.download(["--state", "s", "--dir", "z", url])
            #expect(managed.status == 0, "\(managed.errors)")
            #expect(scene.bytes("z/10") == DownloadScene.pattern(10))
            try scene.directory.write("a file", to: "file")
            let blocked = try await scene.download(["--dir", "file", url])
            #expect(blocked.status == 23 && blocked.errors.contains("directory “file”"), "\(blocked.errors)")
            let missing = try await scene.download(["-o", "a/b/c", url])
            #expect(missing.status == 23, "\(missing.errors)")
            let made = try await scene.download(["-o", "a/b/c", "--create-dirs", url])
            #expect(made.status == 0, "\(made.errors)")
            #expect(scene.bytes("a/b/c") == DownloadScene.pattern(10))
        }
    }

    @Test("An existing file is kept, replaced, or gets a numbered sibling")
    func collisions() async throws {
        try await DownloadScene.run { scene in
            try scene.directory.write("old", to: "f")
            let arguments = ["-o", "f", scene.origin.url("/bytes/10")]
            let rejected = try await scene.download(arguments)
            #expect(rejected.status == 23)
            #expect(rejected.errors.contains("martlet: (23) f: "))
            #expect(scene.bytes("f") == Array("old".utf8))
            #expect(try await scene.download(["--rename"] + arguments).status == 0)
            #expect(scene.bytes("f (1)") == DownloadScene.pattern(10))
            #expect(try await scene.download(["--overwrite"] + arguments).status == 0)
            #expect(scene.bytes("f") == DownloadScene.pattern(10))
        }
    }

    @Test(
        "A download that -m ended reports the elapsed time in every output mode",
        arguments: ["plain", "none"])
    func timeLimit(progress: String) async throws {
        try await DownloadScene.run { scene in
            let run = try await scene.download(
                DownloadScene.patience + [
                    "--progress", progress, "-m", "1.5", "-o", "f", scene.origin.url("/held/70000"),
                ])
            #expect(run.status == 28, "\(run.errors)")
            let url = scene.origin.url("/held/70000")
            let words = run.errors.firstRange(of: "martlet: (28) f: GET \(url): not complete within ")
            let time = words.flatMap {
                Double(run.errors[$0.upperBound...].prefix { $0.isNumber || $0 == "." })
            }
            #expect(try #require(time, "\(run.errors)") >= 1.4)
        }
    }

    @Test("A list from standard input has its own names, checksums and headers")
    func list() async throws {
        try await DownloadScene.run { scene in
            let list = """
                # two files
                \(scene.origin.url("/bytes/3"))
                  out=three
                  checksum=sha256=ea885a6be7460897ba07c272e13c794949e87de4a3d5c9117fbe94f7bed2ee3f
                  header=X-Mark: one
                \(scene.origin.url("/bytes/20"))

                """
            let run = try await scene.download(["-i", "-", "-H", "X-All: yes"], input: list)
            #expect(run.status == 0, "\(run.errors)")
            #expect(scene.names == ["20", "three"])
            #expect(run.errors.contains("three: 3 B in ") && run.errors.contains("; sha256 verified\n"))
            #expect(run.errors.contains("total: 2 of 2 files, 23 B in "))
            let requests = scene.origin.requests
            #expect(requests.allSatisfy { $0.headers["X-All"] == "yes" })
            #expect(requests.filter { $0.target == "/bytes/3" }.allSatisfy { $0.headers["X-Mark"] == "one" })
            #expect(requests.filter { $0.target == "/bytes/20" }.allSatisfy { $0.headers["X-Mark"] == nil })
        }
    }

    @Test("A bad line of a list is rejected with its number, and nothing is sent")
    func badList() async throws {
        try await DownloadScene.run { scene in
            let run = try await scene.download(
                ["-i", "-"], input: "\(scene.origin.url("/bytes/3"))\n  out=a\n  size=3\n")
            #expect(run.status == 2)
            #expect(run.errors.hasPrefix("martlet: (2) standard input, line 3: "), "\(run.errors)")
            #expect(scene.origin.connectionCount == 0)
        }
    }

    @Test("A checksum mismatch exits with 100, and the file is not published")
    func checksum() async throws {
        try await DownloadScene.run { scene in
            let wrong = "sha256=\(String(repeating: "0", count: 64))"
            let run = try await scene.download(["-o", "f", "--checksum", wrong, scene.origin.url("/bytes/9")])
            #expect(run.status == 100, "\(run.errors)")
            #expect(!scene.names.contains("f"))
        }
    }

    private static let failures: [([String], Int32)] = [
        (["/status/404"], 22), (["/status/500", "--retry", "0"], 22),
        (["/redirect/5", "--max-redirs", "2"], 47), (["/bytes/9", "--max-filesize", "8"], 63),
        (["/bytes/9", "-o", "missing/f"], 23), (["/stall", "-m", "0.5"], 28),
        (["/stall", "--stall-timeout", "0.3", "--retry", "0"], 28), (["/reset", "--retry", "0"], 56),
    ]

    @Test("Each failure has its exit code", arguments: failures)
    func codes(_ words: [String], _ status: Int32) async throws {
        try await DownloadScene.run { scene in
            let run = try await scene.download([scene.origin.url(words[0])] + words.dropFirst())
            #expect(run.status == status, "\(run.errors)")
            #expect(run.errors.contains("martlet: (\(status)) "), "\(run.errors)")
        }
    }

    @Test("A missing host, an unknown scheme and an invalid URL exit with 7, 1 and 3")
    func urls() async throws {
        try await DownloadScene.run { scene in
            for (url, status) in [("http://127.0.0.1:1/f", 7), ("ftp://h/f", 1), ("http://h:99999/f", 3)] {
                let run = try await scene.download(["--retry", "0", url])
                #expect(run.status == status, "\(run.errors)")
            }
        }
    }

    @Test(
        "A limit on file sizes exits with 105, not with a signal",
        .enabled(if: !MartletProgram.isThreadSanitized, "that limit is one on a sanitizer's own memory"))
    func fullDisk() async throws {
        try await DownloadScene.run { scene in
            let run = try await Program.run(
                "bash",
                [
                    "-c", "ulimit -f 100; exec \"$0\" \"$@\"", Program.path, "download", "--retry", "0", "-o",
                    "f",
                    scene.origin.url("/bytes/3000000"),
                ], input: [], in: scene.directory)
            #expect(run.status == 105, "\(run.errors)")
            #expect(!scene.names.contains("f"))
        }
    }

    @Test("A second program with the same target exits with 106, and the first one continues")
    func twoPrograms() async throws {
        let gate = Gate()
        try await DownloadScene.run(gate: gate) { scene in
            let arguments =
                DownloadScene.patience
                + ["-o", "f", "--progress", "json", scene.origin.url("/held/100000")]
            let first = try await scene.download(arguments) { running in
                try await running.waitForErrors("\"state\":\"receiving\"")
                let second = try await scene.download(arguments)
                #expect(second.status == 106, "\(second.errors)")
                gate.open()
            }
            #expect(first.status == 0, "\(first.errors)")
            #expect(scene.bytes("f") == DownloadScene.pattern(100_000))
        }
    }

    @Test("Of several failures the first URL's sets the exit code; the other files arrive anyway")
    func several() async throws {
        try await DownloadScene.run { scene in
            let urls = ["/bytes/5", "/status/404", "/bytes/9"].map { scene.origin.url($0) }
            let list = urls.joined(separator: "\n") + "\n  checksum=md5=00000000000000000000000000000000\n"
            let run = try await scene.download(["-i", "-"], input: list)
            #expect(run.status == 22, "\(run.errors)")
            #expect(scene.names.contains("5"))
            #expect(run.errors.contains("total: 1 of 3 files, 2 failed, "))
        }
    }

    @Test("--max-files limits the concurrent files, and --max-per-host those of one host")
    func limits() async throws {
        let gate = Gate()
        try await DownloadScene.run(gate: gate) { scene in
            let urls = (0..<6).map { scene.origin.url("/held/\(1000 + $0)") }
            let limits = ["--max-files", "4", "--max-per-host", "2", "--progress", "json"]
            let run = try await scene.download(DownloadScene.patience + limits + urls) { running in
                try await running.waitForErrors("\"bytes\":1000,")
                #expect(Set(scene.origin.requests.map(\.target)) == ["/held/1000", "/held/1001"])
                gate.open()
            }
            #expect(run.status == 0, "\(run.errors)")
            let atOnce = try DownloadScene.objects(run.errors).map { ($0["downloads"] as? [Any])?.count ?? 0 }
            #expect(atOnce.max() == 2)
            #expect(scene.names.count == 6)
        }
    }

    @Test("Credentials are sent to their server and appear nowhere else")
    func credentials() async throws {
        try await DownloadScene.run { scene in
            let url = scene.origin.url("/bytes/5").replacingOccurrences(of: "://", with: "://me:s3cret@")
            let run = try await scene.download(["-v", "--progress", "json", url])
            #expect(run.status == 0, "\(run.errors)")
            #expect(!run.errors.contains("s3cret"))
            let sent = scene.origin.requests.compactMap { $0.headers["Authorization"] }
            #expect(sent.allSatisfy { $0.hasPrefix("Basic ") })
        }
    }

    @Test(
        "Options that do not apply to downloads are rejected by name, and nothing is sent",
        arguments: [
            ["-X", "POST"], ["-d", "x"], ["-I"], ["-O"], ["-w", "x"], ["--cache", "c"], ["--next"],
            ["-C", "-"],
            ["-Z"], ["--compressed"], ["-r", "0-1"], ["--har", "h"], ["-o", "-"], ["--no-such-option"],
        ])
    func rejected(_ words: [String]) async throws {
        try await DownloadScene.run { scene in
            let run = try await scene.download(words + [scene.origin.url("/bytes/5")])
            #expect(run.status == 2)
            #expect(run.errors.hasPrefix("martlet: (2) option \(words[0]): "), "\(run.errors)")
            #expect(scene.origin.connectionCount == 0)
            #expect(scene.names.isEmpty)
        }
    }

    @Test("The help is printed to standard output, and the general help names the command")
    func help() async throws {
        let run = try await Program.run("download", "--help")
        #expect(run.status == 0)
        #expect(run.text.hasPrefix("USAGE: martlet download ") && run.text.contains("--max-per-host"))
        #expect(try await Program.run("--help").text.contains("download"))
        #expect(try await Program.run("download", "-V").text.hasPrefix("martlet "))
        let shell = try await Program.run("--generate-completion-script", "bash")
        #expect(shell.text.contains("download"))
    }
}
