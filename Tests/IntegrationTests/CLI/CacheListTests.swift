import Foundation
import MartletCache
import MartletStorage
import Testing

@Suite("cache list")
struct CacheListTests {
    @Test("list prints a line for each entry, sorted by URL, with all its details")
    func lists() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        try scene.put(
            "https://b.example/", [("Cache-Control", "max-age=5"), ("Content-Type", "text/html")], age: 86_400
        )
        try scene.put("https://a.example/", partition: "0123456789abcdef0123456789abcdef")
        try scene.put(
            "https://c.example/",
            selections: [
                .init(name: "accept-language", value: "de"), .init(name: "cookie", value: "feedfacefeedface"),
                .init(name: "x-flavour", value: nil),
            ])
        let run = try await scene.run("list")
        #expect(run.status == 0 && run.errors.isEmpty)
        let lines = run.text.split(separator: "\n")
        try #require(lines.count == 3, "\(run.text)")
        #expect(lines[0].hasPrefix("200  4 B "))
        #expect(lines[0].contains("fresh for ") && lines[0].contains("0123456789ab…"))
        #expect(!run.text.contains("0123456789abc"))
        #expect(lines[0].hasSuffix("https://a.example/"))
        #expect(lines[1].contains("stale for 86") && lines[1].contains("everyone  "))
        #expect(lines[1].contains("text/html") && lines[1].hasSuffix("https://b.example/"))
        #expect(
            lines[2].hasSuffix(
                "https://c.example/  [accept-language: de]  [cookie: feedfacefeed…]  [x-flavour: (none)]"))

        let objects = try await scene.run("list", "--json").objects
        #expect(objects.map { $0["url"] as? String ?? "" }.map { $0.dropFirst(8).first } == ["a", "b", "c"])
        #expect(objects[0]["fresh"] as? Bool == true && objects[0]["partition"] as? String == "0123456789ab…")
        #expect(objects[1]["fresh"] as? Bool == false && objects[1]["partition"] is NSNull)
        #expect(try #require(objects[1]["ttl"] as? Int) <= -86_395)
        #expect(try #require(objects[1]["age"] as? Int) >= 86_400)
        #expect(objects[1]["basis"] as? String == "max-age" && objects[1]["type"] as? String == "text/html")
        #expect(objects[1]["status"] as? Int == 200 && objects[1]["bytes"] as? Int == 4)
        let variant = try #require(objects[2]["variant"] as? [[Any]])
        #expect(variant.map { $0[0] as? String } == ["accept-language", "cookie", "x-flavour"])
        #expect(variant[2][1] is NSNull)
    }

    @Test("An entry from the future is stale, and its age is not invented")
    func clockSetBack() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        try scene.put("https://a.example/", age: -86_400)
        #expect(try await scene.run("list").text.contains("stale: clock set back"))
        #expect(try await scene.run("list", "--json").objects.first?["ttl"] is NSNull)
    }

    @Test("Control characters of stored responses never reach a terminal, in text or JSON")
    func escapes() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        let evil = "\u{1B}]0;owned\u{7}\r\n\u{9B}31m\u{202E}\u{7F}é"
        try scene.put(
            "https://a.example/\(evil)", [("Content-Type", "text/é")], partition: evil,
            selections: [.init(name: "x-\(evil)", value: evil)])
        for arguments in [[], ["--json"]] {
            let run = try await Program.run(["cache", "list", "--cache", scene.path] + arguments)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.text.utf8.filter { $0 == 10 }.count == 1)
            let isClean = run.text.unicodeScalars.dropLast().allSatisfy { scalar in
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator: false
                default: true
                }
            }
            #expect(isClean, "\(run.text.debugDescription)")
            #expect(run.text.contains("é"))
        }
        let text = try await scene.run("list").text
        #expect(text.contains(#"https://a.example/\u{1b}]0;owned\u{7}\u{d}\u{a}\u{9b}31m\u{202e}\u{7f}é"#))
        let url = try await scene.run("list", "--json").objects.first?["url"] as? String
        #expect(url == "https://a.example/\(evil)")
    }

    @Test("list ends silently when its reader closes the pipe")
    func closedPipe() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        let path = String(repeating: "x", count: 400)
        for number in 0..<800 { try scene.put("https://a.example/\(path)\(number)") }
        let script = "\"$1\" cache list --cache \"$2\" | head -n 1; exit ${PIPESTATUS[0]}"
        let run = try await Program.run(
            "bash", ["-c", script, "bash", Program.path, scene.path], input: [], in: scene.directory)
        #expect(run.status == 23)
        #expect(run.errors.isEmpty, "\(run.errors)")
        #expect(run.text.utf8.filter { $0 == 10 }.count == 1)
    }

    @Test("10,000 entries are listed one by one: their sixty megabytes of bodies are not in memory")
    func streams() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        let body = [UInt8](repeating: 7, count: 6_000)
        for number in 0..<10_000 {
            try scene.put("https://a.example/some/path/to/make/lines/longer/\(number)", body: body)
        }
        // The unread rest is larger than a pipe: the program is still running and can be measured.
        let script = """
            mkfifo pipe; "$1" cache list --cache "$2" >pipe & p=$!; exec 3<pipe; head -c 1000000 <&3 | wc -l
            grep VmHWM /proc/$p/status; cat <&3 | wc -l; wait $p
            """
        let run = try await Program.run(
            "bash", ["-c", script, "bash", Program.path, scene.path], input: [], in: scene.directory)
        #expect(run.status == 0, "\(run.errors)")
        let words = run.text.split { $0 == " " || $0 == "\n" || $0 == "\t" }
        try #require(words.count == 5, "\(run.text)")
        #expect(try #require(Int(words[0])) + #require(Int(words[4])) == 10_000)
        if !MartletProgram.isSanitized { #expect(try #require(Int(words[2])) < 90_000, "\(run.text)") }
    }
}
