import MartletConditions
import MartletContent
import Foundation
import MartletTesting
import Testing

@Suite("Progress and results of martlet download")
struct DownloadProgressTests {
    @Test("JSON has each event once, in order, and progress in between")
    func json() async throws {
        let gate = Gate()
        try await DownloadScene.run(gate: gate) { scene in
            let arguments = ["--progress", "json", scene.origin.url("/held/9000")]
            let run = try await scene.download(DownloadScene.patience + arguments) { running in
                try await running.waitForErrors("\"bytes\":4500")
                gate.open()
            }
            #expect(run.status == 0, "\(run.errors)")
            let objects = try DownloadScene.objects(run.errors)
            let events = objects.compactMap { $0["event"] as? String }
            #expect(events.count == objects.count)
            #expect(events.first == "started" && events.suffix(2) == ["finished", "ended"])
            #expect(
                events.filter { $0 != "progress" && $0 != "verifying" } == ["started", "finished", "ended"])
            let held = try #require(objects.first { $0["bytes"] as? Int == 4500 })
            #expect(held["total"] as? Int == 9000 && held["files"] as? Int == 1)
            let finished = try #require(objects.first { $0["event"] as? String == "finished" })
            #expect(finished["bytes"] as? Int == 9000 && finished["name"] as? String == "9000")
        }
    }

    @Test("JSON contains a transient failure, with its code and the delay")
    func retrying() async throws {
        try await DownloadScene.run { scene in
            let run = try await scene.download([
                "--progress", "json", "--retry", "1", "--retry-delay", "0.01",
                scene.origin.url("/status/503"),
            ])
            #expect(run.status == 22)
            let objects = try DownloadScene.objects(run.errors)
            let retrying = try #require(
                objects.first { $0["event"] as? String == "retrying" }, "\(run.errors)")
            #expect(retrying["code"] as? String == "unacceptableStatus" && retrying["failures"] as? Int == 1)
            let failed = try #require(objects.first { $0["event"] as? String == "failed" })
            #expect(failed["exit"] as? Int == 22 && failed["kept"] as? Int == 0)
            #expect(objects.last?["ok"] as? Bool == false)
        }
    }

    @Test("A download that cannot be resumed reports no stored bytes after a timeout")
    func nothingKept() async throws {
        try await DownloadScene.run { scene in
            let run = try await scene.download([
                "--progress", "json", "-m", "1", scene.origin.url("/stall/100"),
            ])
            #expect(run.status == 28, "\(run.errors)")
            let objects = try DownloadScene.objects(run.errors)
            let failed = try #require(objects.first { $0["event"] as? String == "failed" }, "\(run.errors)")
            #expect(failed["kept"] as? Int == 0)
            #expect(scene.names.isEmpty, "\(scene.names)")
        }
    }

    @Test("Without a terminal progress is printed as lines without control characters, whatever was requested")
    func plain() async throws {
        try await DownloadScene.run { scene in
            for form in ["auto", "bar", "plain"] {
                let run = try await scene.download([
                    "--progress", form, "--overwrite", "-o", "f\u{1B}[2J", scene.origin.url("/bytes/2048"),
                ])
                #expect(run.status == 0)
                #expect(run.errors.hasPrefix("f\\u{1b}[2J: 2.0 KiB in "), "\(run.errors)")
                #expect(!run.errors.contains { $0 == "\r" || $0 == "\u{1B}" || $0 == "\r\n" })
            }
        }
    }

    @Test("A plain line is printed at least every ten seconds, even during a stall")
    func plainLines() async throws {
        let gate = Gate()
        try await DownloadScene.run(gate: gate) { scene in
            let arguments = ["-o", "f", scene.origin.url("/held/2048")]
            let run = try await scene.download(DownloadScene.patience + arguments) { running in
                try await running.waitForErrors("f: 50%, 1.0 KiB of 2.0 KiB, stalled ")
                gate.open()
            }
            #expect(run.status == 0)
            #expect(run.errors.hasSuffix("\n"))
            let stalled = run.errors.split(separator: "\n").filter { $0.contains("stalled") }
            #expect(stalled.allSatisfy { !$0.contains(" left") }, "no time is left that nobody knows")
        }
    }

    @Test("-s and --progress none show no progress; only the latter prints failures")
    func silence() async throws {
        try await DownloadScene.run { scene in
            let (good, bad) = (scene.origin.url("/bytes/5"), scene.origin.url("/status/404"))
            for option in ["-s", "--progress=none"] {
                let words = option == "-s" ? ["-s"] : ["--progress", "none"]
                #expect(try await scene.download(words + ["--overwrite", good]).errors.isEmpty)
                let failed = try await scene.download(words + [bad])
                #expect(failed.status == 22)
                #expect(failed.errors.isEmpty == (option == "-s"))
            }
            #expect(try await scene.download(["-s", "-S", bad]).errors.hasPrefix("martlet: (22) "))
        }
    }

    @Test("A closed standard error does not end the download")
    func closedPipe() async throws {
        try await DownloadScene.run { scene in
            let script = "{ \"$1\" download -v -o f \"$2\"; echo $? >status; } 2>&1 >/dev/null | true"
            _ = try await Program.run(
                "bash", ["-c", script, "bash", Program.path, scene.origin.url("/bytes/300000")], input: [],
                in: scene.directory)
            #expect(scene.bytes("f") == DownloadScene.pattern(300_000))
            #expect(scene.bytes("status") == Array("0\n".utf8))
        }
    }

    @Test("A blocked standard error does not delay the download, and no event is lost")
    func unreadPipe() async throws {
        let script = """
            mkfifo errors go && exec 3<>errors || exit 90
            "$@" 2>errors 3>&- & program=$!
            read -r _ <go
            exec 4<errors 3>&-
            cat <&4 & reader=$!
            exec 4<&-
            wait $program; status=$?
            wait $reader
            exit $status
            """
        // This is far more than a pipe holds: each of two lines repeats the URL.
        let padding = String(repeating: "x", count: 2000)
        let numbers = 1...60
        try await DownloadScene.run { scene in
            let urls = numbers.map { scene.origin.url("/bytes/\($0)?\(padding)") }
            let run = try await Program.run(
                "bash", ["-c", script, "bash", Program.path, "download", "--progress", "json"] + urls,
                input: [], in: scene.directory
            ) { _ in
                try await scene.origin.waitForRequests(count: numbers.count)
                let go = try #require(FileHandle(forWritingAtPath: scene.directory.appending("go")))
                try go.write(contentsOf: Data("\n".utf8))
                try go.close()
            }
            #expect(run.status == 0, "\(run.errors)")
            let objects = try DownloadScene.objects(run.text)
            for event in ["started", "finished"] {
                let told = objects.filter { $0["event"] as? String == event }.compactMap { $0["id"] as? Int }
                #expect(told.sorted() == Array(numbers))
            }
            #expect(objects.last?["event"] as? String == "ended")
            #expect(numbers.allSatisfy { scene.bytes("\($0)") == DownloadScene.pattern($0) })
        }
    }

    @Test(
        "SIGINT keeps the bytes, prints how to resume and exits with 130; the same command fetches the rest"
    )
    func interrupt() async throws {
        let (first, count) = (Gate(), 400_000)
        try await DownloadScene.run(gate: first) { scene in
            let url = scene.origin.url("/held/\(count)")
            let arguments = DownloadScene.patience + ["--progress", "json", "-o", "f", url]
            let run = try await scene.interruptedDownload(arguments) { running in
                try await running.waitForErrors("\"bytes\":\(count / 2)")
            }
            #expect(run.status == 130, "\(run.errors)")
            let paused = try #require(
                try DownloadScene.objects(run.errors).first { $0["event"] as? String == "paused" })
            #expect(paused["kept"] as? Int == count / 2)
            #expect(!scene.names.contains("f"))
            first.open()
            let requestCount = scene.origin.requests.count
            let again = try await scene.download(["-o", "f", url])
            #expect(again.status == 0, "\(again.errors)")
            #expect(again.errors.contains("f: resumes after 195.3 KiB\n"), "\(again.errors)")
            #expect(scene.bytes("f") == DownloadScene.pattern(count))
            let later = scene.origin.requests.dropFirst(requestCount)
            #expect(!later.isEmpty)
            for request in later {
                let first = request.headers["Range"]?.dropFirst(6).prefix { $0.isNumber }
                #expect(first.flatMap { Int($0) } ?? 0 >= count / 2, "\(request)")
                #expect(request.headers["If-Range"] == "\"held-\(count)\"")
            }
        }
    }

    @Test("SIGINT prints the stored bytes and how to resume")
    func interruptWords() async throws {
        let gate = Gate()
        try await DownloadScene.run(gate: gate) { scene in
            let urls = [scene.origin.url("/bytes/7"), scene.origin.url("/held/4000")]
            let arguments = DownloadScene.patience + ["--max-files", "1"] + urls
            let run = try await scene.interruptedDownload(arguments) { running in
                try await running.waitForErrors("7: 7 B in ")
                try await scene.origin.waitForRequests(count: 2)
            }
            #expect(run.status == 130, "\(run.errors)")
            #expect(run.errors.contains("martlet: stopped."))
            #expect(run.errors.hasSuffix("for the rest:\n  \(urls[1])\n"), "\(run.errors)")
        }
    }
}
