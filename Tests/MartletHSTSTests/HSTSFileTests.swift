import Foundation
import Martlet
import MartletHSTS
import MartletTestSupport
import MartletTesting
import Testing

@Suite("HSTS files")
struct HSTSFileTests {
    /// Runs a test with the path of a file that does not exist, in a directory of its own.
    private func withPath(_ body: (String) async throws -> Void) async throws {
        let directory = FileManager.default.temporaryDirectory.path + "/martlet-hsts-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await body(directory + "/hsts.txt")
    }

    private func text(of path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

    private func lines(of path: String) throws -> [String] {
        try text(of: path).split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
    }

    private static let day = Date(timeIntervalSince1970: 4_102_444_799)

    @Test("Entries survive writing and reading, in the format of curl, in a file of mode 0600")
    func roundTrip() async throws {
        try await withPath { path in
            let store = try HSTSStore(file: path)
            #expect(store.entries.isEmpty && store.malformedLines.isEmpty && !store.hasUnsavedChanges)
            try await store.save()
            #expect(!FileManager.default.fileExists(atPath: path))
            store.set(try HSTSEntry(host: "bücher.example", includesSubdomains: true, expires: HSTSFileTests.day))
            store.set(try HSTSEntry(host: "a.test"))
            store.set(try HSTSEntry(host: "b.test", expires: .distantPast))
            #expect(store.hasUnsavedChanges && store.entries.count == 2)
            try await store.save()
            #expect(!store.hasUnsavedChanges)
            #expect(
                try lines(of: path) == ["a.test \"unlimited\"", ".xn--bcher-kva.example \"20991231 23:59:59\""])
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            #expect(try HSTSStore(file: path).entries == store.entries)
            store.removeAll()
            try await store.save()
            #expect(try lines(of: path).isEmpty)
        }
    }

    @Test("Damaged lines are skipped and listed, and the others are read")
    func damaged() async throws {
        try await withPath { path in
            let valid = [
                "a.test \"20991231 23:59:59\"", ".B.test.  \"unlimited\"\r", "\t c.test\t\"20991231 00:00:00\" ",
                "# comment", "", "d.test \"20200101 00:00:00\"", "a.test \"20300101 00:00:00\"",
            ]
            let invalid = [
                "e.test", "e.test unlimited", "e.test \"\"", "e.test \"", "e.test \"20991232 00:00:00\"",
                "e.test \"20990229 00:00:00\"", "e.test \"20991231 24:00:00\"", "e.test \"2099123100:00:00\"",
                "e.test \"20991231 00:00:00\" x", "\"unlimited\"", "127.0.0.1 \"unlimited\"", "..e.test \"unlimited\"",
                ". \"unlimited\"", "e.test \"2099123x 00:00:00\"", "\u{0}\u{1}", "e.test \"Unlimited\"",
                "e.test \"-0991231 00:00:00\"", "e/f \"unlimited\"",
            ]
            var bytes = Array((valid + invalid).joined(separator: "\n").utf8)
            bytes += [0x0A, 0xFF, 0xFE, 0x20, 0x22, 0x22]
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            let store = try HSTSStore(file: path)
            #expect(store.entries.map(\.host) == ["a.test", "b.test", "c.test"])
            #expect(store.entries.map(\.includesSubdomains) == [false, true, false])
            #expect(store.entries[0].expires == Date(timeIntervalSince1970: 4_102_444_799))
            #expect(store.malformedLines == Array(valid.count + 1...valid.count + invalid.count + 1))
        }
    }

    @Test("Any prefix of a file is read without an error, and without a false entry")
    func cut() throws {
        let entries = [
            try HSTSEntry(host: "a.test", includesSubdomains: true),
            try HSTSEntry(host: "b.test", expires: .distantFuture),
            try HSTSEntry(host: "c.test", expires: HSTSFileTests.day),
        ]
        let text = Array(HSTSFile.text(of: entries).utf8)
        for count in text.indices {
            let content = HSTSFile.content(Array(text[..<count]))
            #expect(content.malformedLines.count <= 1 && content.entries.count <= 3)
            for entry in content.entries.values { #expect(HSTSFile.content(text).entries[entry.host] == entry) }
        }
        let many = String(repeating: "x\n", count: 3000)
        #expect(HSTSFile.content(Array(many.utf8)).malformedLines == Array(1...1000))
    }

    @Test("A file that cannot be read, or is too large, is an error, and is not replaced")
    func unreadable() async throws {
        try await withPath { path in
            let store = try HSTSStore(file: path)
            store.set(try HSTSEntry(host: "a.test"))
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            #expect(throws: StorageError.self) { try HSTSStore(file: path) }
            await #expect(throws: StorageError.self) { try await store.save() }
            // Requests continue with the entries in memory, and a later call saves them.
            #expect(store.isKnownHost("a.test") && store.hasUnsavedChanges)
            try FileManager.default.removeItem(atPath: path)
            try Data(count: 17 << 20).write(to: URL(fileURLWithPath: path))
            #expect(throws: StorageError.self) { try HSTSStore(file: path) }
            await #expect(throws: StorageError.self) { try await store.save() }
            try FileManager.default.removeItem(atPath: path)
            try await store.save()
            #expect(try lines(of: path) == ["a.test \"unlimited\""])
            let missing = try HSTSStore(file: path + ".d/hsts.txt")
            missing.set(try HSTSEntry(host: "a.test"))
            await #expect(throws: StorageError.self) { try await missing.save() }
        }
    }

    @Test("The limit also holds for a file, of which the entries that expire last are read")
    func limit() async throws {
        try await withPath { path in
            let all = try (0..<100).map { number in
                try HSTSEntry(host: "h\(number).test", expires: HSTSFileTests.day + Double(number))
            }
            try HSTSFile.text(of: all).write(toFile: path, atomically: true, encoding: .utf8)
            let store = try HSTSStore(file: path, limit: 3)
            #expect(Set(store.entries.map(\.host)) == ["h97.test", "h98.test", "h99.test"])
            store.set(try HSTSEntry(host: "new.test"))
            try await store.save()
            #expect(try lines(of: path).count == 3)
            #expect(try lines(of: path).contains("new.test \"unlimited\""))
        }
    }

    @Test("Two processes that save in turn keep each other's entries and their own removals")
    func processes() async throws {
        try await withPath { path in
            let one = try HSTSStore(file: path)
            for host in ["both.test", "gone.test"] { one.set(try HSTSEntry(host: host)) }
            try await one.save()
            let two = try HSTSStore(file: path)
            one.set(try HSTSEntry(host: "one.test"))
            one.remove("gone.test")
            try await one.save()
            two.set(try HSTSEntry(host: "two.test"))
            two.set(try HSTSEntry(host: "both.test", includesSubdomains: true))
            try await two.save()
            // An entry that another process removed stays known where it was not removed.
            #expect(two.entries.map(\.host) == ["both.test", "gone.test", "one.test", "two.test"])
            one.remove("gone.test")
            one.set(try HSTSEntry(host: "late.test"))
            try await one.save()
            #expect(one.entries.map(\.host) == ["both.test", "gone.test", "late.test", "one.test", "two.test"])
            #expect(one.entries[0].includesSubdomains)
            one.removeAll()
            one.set(try HSTSEntry(host: "last.test"))
            try await one.save()
            #expect(try lines(of: path) == ["last.test \"unlimited\""])
        }
    }

    @Test("Entries that are stored while the file is written are saved by the next call")
    func concurrentSaves() async throws {
        try await withPath { path in
            let store = try HSTSStore(file: path)
            try await withThrowingTaskGroup { group in
                for number in 0..<40 {
                    group.addTask {
                        store.set(try HSTSEntry(host: "h\(number).test"))
                        try await store.save()
                    }
                }
                try await group.waitForAll()
            }
            #expect(!store.hasUnsavedChanges && store.entries.count == 40)
            #expect(try HSTSStore(file: path).entries == store.entries)
            // More unsaved changes than are counted one by one: the file is replaced.
            let small = try HSTSStore(file: path, limit: 2)
            for number in 0..<10 { small.set(try HSTSEntry(host: "s\(number).test")) }
            try await small.save()
            #expect(try lines(of: path).count == 2 && !small.hasUnsavedChanges)
        }
    }

    @Test("curl upgrades a URL by a file of the store, and the store reads the file that curl writes")
    func curl() async throws {
        var options = OriginOptions.tls()
        options.tls?.additionalNames = ["known.example", "other.example"]
        try await TestOrigin.withOrigin(options) { _ in
            OriginResponse.text("secure").with { $0.headers.append("Strict-Transport-Security", "max-age=1000") }
        } run: { origin in
            try await withPath { path in
                let store = try HSTSStore(file: path)
                store.set(try HSTSEntry(host: "example", includesSubdomains: true))
                try await store.save()
                let authority = path + ".pem"
                try #require(origin.authorityPEM).write(toFile: authority, atomically: true, encoding: .utf8)
                let line = [
                    "/usr/bin/curl", "-q", "-sS", "--noproxy", "*", "--max-time", "300", "--cacert", authority,
                    "--hsts", path, "--resolve", "known.example:\(origin.port):127.0.0.1",
                    "http://known.example:\(origin.port)/",
                ]
                let (output, status) = try await PipedProcess.run {
                    let process = try PipedProcess.start(line)
                    return (process.readToEnd(), process.end().status)
                }
                #expect(status == 0 && String(decoding: output, as: UTF8.self) == "secure")
                let read = try HSTSStore(file: path)
                #expect(read.malformedLines.isEmpty && read.entries.map(\.host).contains("example"))
                #expect(read.entries.first?.includesSubdomains == true)
            }
        }
    }
}
