import Foundation
import Glibc
import MartletTesting
import Testing

@Suite("queue add, list, run, retry and drop")
struct QueueCommandTests {
    @Test("add prints a number, list prints all details, and nothing is sent")
    func add() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        try await TestOrigin.withOrigin(.plain, handler: .echo) { origin in
            #expect(try await scene.add("--tag", "note-1", "-d", "a=1", origin.url("/notes")) == "1")
            #expect(
                try await scene.add(
                    "--lane", "mine", "--no-key", "--expires", "12h", "-X", "PATCH", origin.url("/x"))
                    == "2")
            let list = try await scene.list
            try #require(list.count == 2)
            #expect(list[0]["state"] as? String == "waiting" && list[0]["tag"] as? String == "note-1")
            #expect(list[0]["method"] as? String == "POST" && list[0]["bytes"] as? Int == 3)
            #expect(list[0]["url"] as? String == origin.url("/notes"))
            #expect(list[0]["lane"] as? String == origin.base)
            #expect((list[0]["key"] as? String)?.count == 34)
            let lives = list.map { (($0["expires_ms"] as? Int) ?? 0) - (($0["submitted_ms"] as? Int) ?? 0) }
            #expect(lives == [604_800_000, 43_200_000])
            #expect(list[1]["key"] is NSNull && list[1]["lane"] as? String == "mine")
            let text = try await scene.run("list")
            #expect(text.text.hasPrefix("1     waiting    0 tries   expires in "), "\(text.text)")
            #expect(text.text.contains("PATCH \(origin.url("/x"))  lane mine\n"))
            #expect(origin.connectionCount == 0)
        }
    }

    @Test("run --until-empty delivers requests in order, prints each event, and exits with 0")
    func deliver() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        try await TestOrigin.withOrigin(.plain, handler: .echo) { origin in
            for number in 1...3 {
                try await scene.add(
                    "--tag", "t\(number)", "--json", "{\"n\":\(number)}", origin.url("/\(number)"))
            }
            let run = try await scene.run("run", ["--until-empty"])
            #expect(run.status == 0 && run.errors.isEmpty, "\(run.errors)")
            let lines = run.text.split(separator: "\n").map(String.init)
            let url = origin.url("/1")
            #expect(lines.first == "attempt 1 POST \(url) [t1]: try 1", "\(run.text)")
            #expect(lines.dropFirst().first == "delivered 1 POST \(url) [t1]: status 200")
            #expect(
                lines.suffix(2) == [
                    "drained", "ended: 3 delivered, 0 dead, 0 uncertain, 0 expired, 0 unreadable, 0 left",
                ])
            #expect(origin.requests.map(\.target) == ["/1", "/2", "/3"])
            #expect(origin.requests.allSatisfy { $0.headers["Content-Type"] == "application/json" })
            #expect(Set(origin.requests.map { $0.headers["Idempotency-Key"] }).count == 3)
            #expect(try await scene.list.isEmpty)
            let empty = try await scene.run("run", ["--until-empty"])
            #expect(empty.status == 0 && empty.text.hasPrefix("ended: 0 delivered"), "\(empty.text)")
        }
    }

    @Test(
        "Every kind of body arrives unchanged: a form, a referenced file, a copied one, standard input"
    )
    func bodies() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        let bodies = Received()
        try await TestOrigin.withOrigin(.plain) { request in
            var body: [UInt8] = []
            for try await piece in request.body { body += piece }
            await bodies.add(request.path, String(decoding: body, as: UTF8.self))
            return OriginResponse(201)
        } run: { origin in
            try scene.directory.write("kept", to: "kept.txt")
            try scene.directory.write("copied", to: "copied.txt")
            try await scene.add("-F", "name=value", origin.url("/form"))
            try await scene.add("-T", "kept.txt", origin.url("/kept"))
            try await scene.add("--copy", "-T", "copied.txt", origin.url("/copied"))
            let piped = try await scene.run("add", ["-T", "-", origin.url("/piped")], input: "piped")
            #expect(piped.status == 0, "\(piped.errors)")
            try scene.directory.write("changed", to: "copied.txt")
            let run = try await scene.run("run", ["--until-empty"])
            #expect(run.status == 0, "\(run.text)\(run.errors)")
            let all = await bodies.all
            #expect(all["/form"]?.contains("name=\"name\"\r\n\r\nvalue\r\n") == true)
            #expect(all["/kept"] == "kept" && all["/copied"] == "copied" && all["/piped"] == "piped")
        }
    }

    @Test("A file that was replaced before the delivery causes a dead letter and exit code 22")
    func changedFile() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        try await TestOrigin.withOrigin(.plain, handler: .echo) { origin in
            try scene.directory.write("before", to: "file")
            try await scene.add("-T", "file", origin.url("/"))
            try scene.directory.write("after!", to: "file")
            let run = try await scene.run("run", ["--until-empty"])
            #expect(run.status == 22 && run.text.contains(": bodyChanged, "), "\(run.text)")
            #expect(origin.connectionCount == 0)
        }
    }

    @Test(
        "A rejected request is a dead letter with exit code 22; retry sends it again, drop removes it"
    )
    func decide() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        let state = Received()
        try await TestOrigin.withOrigin(.plain) { request in
            await state.add("key", request.headers["Idempotency-Key"] ?? "")
            return await state.isMended ? .text("made", status: 201) : .text("no such note", status: 422)
        } run: { origin in
            try await scene.add("--key", "mine", "-d", "x", origin.url("/a"))
            try await scene.add("-d", "y", origin.url("/b"))
            let first = try await scene.run("run", ["--until-empty", "--json"])
            #expect(first.status == 22, "\(first.text)\(first.errors)")
            let events = try first.objects
            let dead = try #require(events.first { $0["event"] as? String == "dead" })
            #expect(dead["id"] as? Int == 1 && dead["status"] as? Int == 422)
            #expect(dead["reason"] as? String == "refused" && dead["body"] as? String == "no such note")
            #expect(dead["key"] as? String == "\"mine\"")
            #expect(events.last?["event"] as? String == "ended" && events.last?["dead"] as? Int == 2)
            #expect(events.last?["exit"] as? Int == 22)
            let list = try await scene.list
            #expect(list.map { $0["state"] as? String } == ["dead", "dead"])
            #expect((list[0]["letter"] as? [String: Any])?["body"] as? String == "no such note")
            // Dead letters of an earlier run count as remaining requests.
            #expect(try await scene.run("run", ["--until-empty"]).status == 103)
            #expect(try await scene.run("retry", ["1"]).status == 0)
            #expect(try await scene.run("drop", ["2"]).status == 0)
            #expect(try await scene.list.map { $0["state"] as? String } == ["waiting"])
            await state.mend()
            let second = try await scene.run("run", ["--until-empty", "--json"])
            #expect(second.status == 0, "\(second.text)")
            let delivered = try #require(try second.objects.first { $0["event"] as? String == "delivered" })
            #expect(delivered["status"] as? Int == 201 && delivered["body"] as? String == "made")
            #expect(await state.all["key"] == "\"mine\"")
            #expect(try await scene.list.isEmpty)
        }
    }

    @Test(
        "Without a server requests wait; SIGINT and SIGTERM exit with 103, and nothing is lost",
        arguments: [
            SIGINT, SIGTERM,
        ])
    func interrupted(_ number: Int32) async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        let port = FreePorts.draw()
        try await scene.add("-d", "x", "http://127.0.0.1:\(port)/")
        let run = try await scene.run(until: "postponed 1 ", signal: number)
        #expect(run.status == 103, "\(run.output)")
        #expect(run.output.contains(": unreachable, again in "))
        #expect(run.output.hasSuffix(" 1 left\n"))
        #expect(try await scene.list.map { $0["state"] as? String } == ["waiting"])
    }

    @Test("A POST without a key that was never sent waits for the next process and is not uncertain")
    func keyless() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        let port = FreePorts.draw()
        try await scene.add("--no-key", "-d", "x", "http://127.0.0.1:\(port)/")
        let run = try await scene.run(until: "postponed 1 ")
        #expect(run.status == 103, "\(run.output)")
        #expect(try await scene.list.map { $0["state"] as? String } == ["waiting"])
    }

    @Test("A POST without a key whose response is lost is uncertain, exits with 22, and is not repeated")
    func uncertain() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        try await TestOrigin.withOrigin(.plain) { _ in
            throw OriginFault(.cut)
        } run: { origin in
            try await scene.add("--no-key", "-d", "x", origin.url("/"))
            let run = try await scene.run("run", ["--until-empty"])
            #expect(run.status == 22 && run.text.contains("\nuncertain 1 POST "), "\(run.text)")
            #expect(try await scene.run("run", ["--until-empty"]).status == 103)
            #expect(origin.requests.count == 1)
            #expect(try await scene.list.map { $0["state"] as? String } == ["uncertain"])
        }
    }

    @Test("One command at a time uses the directory: the second one exits with 106")
    func inUse() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        let port = FreePorts.draw()
        try await scene.add("-d", "x", "http://127.0.0.1:\(port)/")
        let run = try await scene.run(until: "attempt 1 ") {
            let others: [(String, [String])] = [
                ("run", []), ("add", ["http://h/"]), ("list", []), ("retry", ["1"]), ("drop", ["1"]),
            ]
            for (command, arguments) in others {
                let second = try await scene.run(command, arguments)
                #expect(second.status == 106, "\(command): \(second.errors)")
                #expect(
                    second.errors.hasPrefix("martlet: (106) \(scene.path): another queue uses this directory"),
                    "\(second.errors)")
                #expect(second.output.isEmpty)
            }
        }
        #expect(run.status == 103)
    }

    @Test("An unknown number exits with 2, and the others are processed anyway")
    func unknown() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        try await scene.add("http://h/")
        let run = try await scene.run("drop", ["7", "1", "8"])
        #expect(run.status == 2)
        #expect(run.errors.contains("no request 7") && run.errors.contains("no request 8"), "\(run.errors)")
        #expect(try await scene.list.isEmpty)
        #expect(try await scene.run("retry", ["1"]).status == 2)
    }

    @Test("A damaged record is moved aside and reported; the others are sent, and the exit code is 26")
    func damaged() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        try await TestOrigin.withOrigin(.plain, handler: .echo) { origin in
            for _ in 1...2 { try await scene.add(origin.url("/")) }
            let record = URL(fileURLWithPath: "\(scene.path)/1.request")
            var data = try Data(contentsOf: record)
            data[data.count / 2] ^= 1
            try data.write(to: record)
            let run = try await scene.run("run", ["--until-empty", "--json"])
            #expect(run.status == 26, "\(run.text)\(run.errors)")
            let events = try run.objects
            #expect(events.first?["event"] as? String == "setAside")
            #expect(events.first?["path"] as? String == "\(scene.path)/corrupt/1.request")
            #expect(events.contains { $0["event"] as? String == "delivered" && $0["id"] as? Int == 2 })
            #expect(try await scene.run("run", ["--until-empty"]).status == 0)
        }
    }

    @Test(
        "The directory is below XDG_STATE_HOME, else HOME; list creates none, and prints nothing without one"
    )
    func directories() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        for (variable, directory) in [
            ("XDG_STATE_HOME=\(scene.directory.appending("state"))", "state/martlet/queue"),
            ("HOME=\(scene.directory.appending("home"))", "home/.local/state/martlet/queue"),
        ] {
            let environment = variable.hasPrefix("HOME") ? ["-u", "XDG_STATE_HOME", variable] : [variable]
            let list = try await Program.run(
                ["queue", "list"], in: scene.directory, environment: environment)
            #expect(list.status == 0 && list.output.isEmpty && list.errors.isEmpty, "\(list.errors)")
            let path = scene.directory.appending(directory)
            #expect(!FileManager.default.fileExists(atPath: path))
            let add = try await Program.run(
                ["queue", "add", "http://h/"], in: scene.directory, environment: environment)
            #expect(add.status == 0 && add.text == "1\n", "\(add.errors)")
            #expect(FileManager.default.fileExists(atPath: "\(path)/1.request"))
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
            #expect(mode?.intValue == 0o700)
        }
    }

    @Test(
        "Invalid options exit with 2, and no directory is created",
        arguments: [
            ["add"], ["add", "http://a/", "http://b/"], ["add", "-o", "f", "http://a/"],
            ["add", "-L", "http://a/"],
            ["add", "--expires", "soon", "http://a/"], ["add", "-H", "Accept:", "http://a/"],
            ["run", "http://a/"],
            ["run", "-d", "x"], ["run", "--retry", "3"], ["run", "-H", "Idempotency-Key: 1"], ["retry"],
            ["drop"],
            ["retry", "x"], ["drop", "-1"], ["list", "x"], ["frobnicate"],
            ["add", "--queue", "", "http://a/"],
        ])
    func usage(_ words: [String]) async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        let run = try await scene.run(words[0], Array(words.dropFirst()))
        #expect(run.status == 2, "\(run.errors)")
        #expect(!run.errors.isEmpty && run.output.isEmpty)
        #expect(!FileManager.default.fileExists(atPath: scene.path))
    }

    @Test("Each command has a help, which exits with 0")
    func help() async throws {
        for command in ["add", "run", "list", "retry", "drop"] {
            let run = try await Program.run("queue", command, "--help")
            #expect(run.status == 0 && run.text.contains("USAGE: martlet queue \(command)"), "\(run.text)")
        }
        let all = try await Program.run("help", "queue")
        #expect(all.status == 0 && all.text.contains("103:") && all.text.contains("106:"), "\(all.text)")
    }
}

/// The requests that a handler has received.
private actor Received {
    private(set) var all: [String: String] = [:]
    private(set) var isMended = false

    func add(_ name: String, _ text: String) {
        all[name] = text
    }

    func mend() {
        isMended = true
    }
}
