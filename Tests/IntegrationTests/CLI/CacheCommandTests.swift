import Foundation
import Glibc
import MartletCache
import MartletStorage
import Testing

@Suite("cache stats, verify and clear")
struct CacheCommandTests {
    @Test("stats counts all, fresh, stale, private and damaged entries, and bytes as du does")
    func stats() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        try scene.put("https://a.example/1")
        try scene.put("https://a.example/2", partition: "somebody")
        try scene.put("https://a.example/3", [("Cache-Control", "max-age=5")], age: 86_400)
        try scene.put("https://a.example/4", body: [UInt8](repeating: 7, count: 100_000))
        try scene.damage(try #require(scene.entryFiles.first { $0.utf8.count == 34 }))
        let json = try await scene.run("stats", "--json")
        #expect(json.status == 0, "\(json.errors)")
        let object = try #require(try json.objects.first)
        #expect(object["entries"] as? Int == 3)
        #expect(object["damaged"] as? Int == 1)
        #expect((object["statuses"] as? [String: Int]) == ["200": 3])
        let (fresh, stale) = (object["fresh"] as? Int ?? 0, object["stale"] as? Int ?? 0)
        #expect(fresh + stale == 3 && fresh >= 2)
        let files = LinuxFileSystem()
        let occupied = try files.names(inDirectory: scene.path).reduce(
            try files.status(at: scene.path).allocatedByteCount
        ) { try $0 + files.status(at: "\(scene.path)/\($1)").allocatedByteCount }
        #expect(object["bytes"] as? Int == Int(occupied))
        let oldest = try #require(object["oldest_ms"] as? Int),
            newest = try #require(object["newest_ms"] as? Int)
        #expect(oldest <= newest)
        let table = try await scene.run("stats")
        #expect(table.text.contains("entries      3\n"), "\(table.text)")
        #expect(table.text.contains("damaged      1\n"))
        #expect(table.text.contains("status 200   3\n"))
        #expect(table.text.contains(" GMT\n"))
    }

    @Test("An empty directory is an empty cache")
    func empty() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        let stats = try await scene.run("stats", "--json")
        #expect(try stats.objects.first?["entries"] as? Int == 0)
        #expect(try await scene.run("list").output.isEmpty)
        #expect(try await scene.run("verify").status == 0)
        let clear = try await scene.run("clear")
        #expect(clear.status == 0 && clear.text.hasPrefix("removed 0 entries"))
    }

    @Test("stats, list and verify create, remove and write no files in an intact cache")
    func changesNothing() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        for number in 0..<20 { try scene.put("https://a.example/\(number)") }
        try scene.put("https://a.example/large", body: [UInt8](repeating: 1, count: 100_000))
        #expect(scene.cache.saveIndex())
        try scene.directory.write("theirs", to: "cache/notes.txt")
        let before = try scene.snapshot
        for command in ["stats", "list", "verify"] {
            #expect(try await scene.run(command).status == 0, "\(command)")
            #expect(try scene.snapshot == before, "\(command)")
        }
    }

    @Test("stats and list keep damaged entries")
    func looksOnly() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        try scene.put("https://a.example/1")
        try scene.damage(try #require(try scene.entryFiles.first))
        let before = try scene.snapshot
        #expect(try await scene.run("stats").text.contains("damaged      1\n"))
        let list = try await scene.run("list")
        #expect(list.status == 0 && list.text.hasPrefix("damaged  "), "\(list.text)")
        #expect(try await scene.run("list", "--json").objects.first?["damaged"] is String)
        #expect(try scene.snapshot == before)
    }

    @Test("verify names the damaged entries, removes only those, and exits with 100 once")
    func verify() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        try scene.put("https://a.example/1")
        try scene.put("https://a.example/large", body: [UInt8](repeating: 1, count: 100_000))
        // The damage is in the middle of a large body, so that only reading all of it detects it.
        let body = try #require(try scene.entryFiles.first { $0.utf8.count > 34 })
        try scene.damage(body)
        try scene.directory.write("theirs", to: "cache/notes.txt")
        let found = try await scene.run("verify", "--json")
        #expect(found.status == 100, "\(found.errors)")
        let object = try #require(try found.objects.first)
        #expect(object["whole"] as? Int == 1 && object["damaged"] as? Int == 1)
        let damages = try #require(object["damages"] as? [[String: String]])
        #expect(damages.first?["file"] == String(body.prefix(34)))
        #expect(damages.first?["damaged"] == "a checksum does not match")
        #expect(try scene.entryFiles.count == 1)
        #expect(OutputFile.contents(of: "\(scene.path)/notes.txt") == "theirs")
        let again = try await scene.run("verify")
        #expect(again.status == 0 && again.text == "1 whole, 4 B of bodies; 0 damaged\n", "\(again.text)")
    }

    @Test("clear removes all entries and prints their number; foreign files stay")
    func clear() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        for number in 0..<5 { try scene.put("https://a.example/\(number)") }
        try scene.put("https://a.example/large", body: [UInt8](repeating: 1, count: 100_000))
        try scene.directory.write("theirs", to: "cache/notes.txt")
        let run = try await scene.run("clear")
        #expect(run.status == 0 && run.text.hasPrefix("removed 6 entries, "), "\(run.text)\(run.errors)")
        #expect(try scene.entryFiles.isEmpty)
        #expect(OutputFile.contents(of: "\(scene.path)/notes.txt") == "theirs")
        // A cache that is open sees it, and continues to store.
        #expect(scene.cache.variants(of: CacheKey(url: "https://a.example/1")).isEmpty)
        try scene.put("https://a.example/1")
        #expect(try await scene.run("clear", "--json").objects.first?["entries"] as? Int == 1)
    }

    @Test("clear with URLs removes all variants of these URLs and no others")
    func clearURLs() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        try scene.put("https://a.example/1")
        try scene.put("https://a.example/1", partition: "somebody")
        try scene.put("https://a.example/2", selections: [.init(name: "accept-language", value: "de")])
        try scene.put("https://a.example/2", selections: [.init(name: "accept-language", value: "fr")])
        try scene.put("https://a.example/3")
        let run = try await scene.run(
            "clear", "--json", "HTTPS://A.example:443/1", "https://a.example/2", "https://a.example/none")
        #expect(run.status == 0, "\(run.errors)")
        let objects = try run.objects
        #expect(objects.map { $0["entries"] as? Int } == [2, 2, 0])
        #expect(objects.first?["url"] as? String == "https://a.example/1")
        let left = try await scene.run("list", "--json").objects
        #expect(left.map { $0["url"] as? String } == ["https://a.example/3"])
        let text = try await scene.run("clear", "https://a.example/3", "https://a.example/none").text
        #expect(text.hasPrefix("https://a.example/3: removed 1 entry, "), "\(text)")
        #expect(text.hasSuffix("https://a.example/none: not in the cache\n"))
    }

    @Test("An invalid URL is rejected before anything is removed")
    func clearBadURL() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        try scene.put("https://a.example/1")
        #expect(try await scene.run("clear", "https://a.example/1", "https://").status == 3)
        #expect(try await scene.run("clear", "https://a.example/1", "gopher://a.example/").status == 1)
        #expect(try scene.entryFiles.count == 1)
    }

    @Test(
        "A missing directory is named, exits with 2, and is not created",
        arguments: ["stats", "list", "verify", "clear"])
    func missing(_ command: String) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = directory.appending("none")
        let run = try await Program.run(["cache", command, "--cache", path])
        #expect(run.status == 2)
        #expect(run.errors == "martlet: \(path): the directory does not exist\n")
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("A directory that is not a cache is rejected and unchanged, even with files called index and lock")
    func foreign() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = try directory.makeDirectory("repository")
        try CacheScene.set([.posixPermissions: 0o700], of: path)
        for name in ["index", "lock", "notes.txt"] {
            try directory.write(name == "lock" ? "" : "theirs", to: "repository/\(name)")
        }
        for command in ["stats", "list", "verify", "clear"] {
            let run = try await Program.run(["cache", command, "--cache", path])
            #expect(run.status == 2 && run.errors.contains("is not a cache"), "\(command): \(run.errors)")
        }
        let file = try await Program.run([
            "cache", "clear", "--cache", directory.appending("repository/index"),
        ])
        #expect(file.status == 2 && file.errors.contains("is not a directory"), "\(file.errors)")
        // These commands would create a cache in the directory, and must fail before they send anything.
        for arguments in [
            ["get", "--cache", path, "http://127.0.0.1:1/"],
            ["queue", "add", "--queue", path, "http://127.0.0.1:1/"],
            ["download", "--state", path, "http://127.0.0.1:1/file"],
        ] {
            let run = try await Program.run(arguments)
            #expect(run.status != 0 && run.errors.contains(path), "\(arguments): \(run.errors)")
            #expect(run.errors.contains("it was not changed; choose a new"), "\(run.errors)")
        }
        #expect(OutputFile.contents(of: directory.appending("repository/index")) == "theirs")
        #expect(try FileManager.default.contentsOfDirectory(atPath: path).count == 3)
    }

    @Test("A directory that others can read, or that another user owns, is rejected with a remedy")
    func notPrivate() async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        try scene.put("https://a.example/1")
        try CacheScene.set([.posixPermissions: 0o755], of: scene.path)
        let open = try await scene.run("list")
        #expect(open.status == 2 && open.errors.contains("chmod 700"), "\(open.errors)")
        // Only root can change an owner; for any other user the files of root have another owner.
        let isRoot = geteuid() == 0
        if isRoot {
            try CacheScene.set([.posixPermissions: 0o700, .ownerAccountID: 65_534], of: scene.path)
        }
        let other = try await Program.run(["cache", "list", "--cache", isRoot ? scene.path : "/usr"])
        #expect(other.status == 2 && other.errors.contains("belongs to another user"), "\(other.errors)")
    }

    @Test("A missing or empty --cache is an error of the command line")
    func usage() async throws {
        for arguments in [["cache", "list"], ["cache", "stats", "--cache", ""], ["cache", "frobnicate"]] {
            let run = try await Program.run(arguments)
            #expect(run.status == 2 && !run.errors.isEmpty && run.output.isEmpty, "\(arguments)")
        }
        let help = try await Program.run("help", "cache")
        #expect(
            help.status == 0 && help.text.contains("verify") && help.text.contains("100:"), "\(help.text)")
    }
}
