import Foundation
import Glibc
import MartletStorage
import MartletTestSupport
import Testing

@testable import MartletCache

@Suite("Directories that a cache accepts")
struct CacheDirectoryKindTests {
    /// The files in a directory before a cache is opened there.
    struct Contents: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let files: [String: String]
        /// A part of the error; `nil` for a directory that is accepted.
        var rejection: String?

        init(_ name: String, _ files: [String: String], rejection: String? = nil) {
            testDescription = name
            self.files = files
            self.rejection = rejection
        }
    }

    private static let entry = String(repeating: "0123456789abcdef", count: 2) + ".0"

    private static let body = entry + ".0123456789abcdef"
    private static let zeros = String(repeating: "\0", count: 600)

    static let contents = [
        Contents("nothing", [:]),
        Contents("an empty lock", ["lock": ""]),
        Contents("half a mark", ["lock": "MR"]),
        Contents("the mark", ["lock": "MRTl"]),
        Contents("the mark, and files that came later", ["lock": "MRTl", "notes.txt": "mine"]),
        Contents("an entry of an earlier version", [entry: "MRTe, damaged"]),
        Contents("an entry and notes", [entry: "MRTe", "lock": "", "notes.txt": "mine"]),
        Contents("an entry, and a damaged lock and index", [entry: "MRTe", "lock": "x", "index": "x"]),
        Contents("an index without a lock", ["index": "MRTi"]),
        Contents("a half-written entry", ["new.0123456789abcdef": "x"]),
        Contents(
            "an empty lock and half-written files",
            ["lock": "", "index": "M", entry: "", body: "x", "new.0123456789abcdef": ""]),
        Contents("zeros", ["lock": zeros, "index": zeros, entry: zeros]),
        Contents("another program's index", ["index": "tree"], rejection: "wrote its file “index”"),
        Contents("another program's lock", ["lock": "1234\n"], rejection: "wrote its file “lock”"),
        Contents(
            "another program's index and lock", ["index": "tree", "lock": "1234\n"],
            rejection: "wrote its file “index”"),
        Contents(
            "another program's index, and an empty lock", ["index": "tree", "lock": ""],
            rejection: "wrote its file “index”"),
        Contents(
            "another program's index that begins with zeros", ["index": "\0\0\0\u{1}", "lock": ""],
            rejection: "wrote its file “index”"),
        Contents("another program's lock, and a body", ["lock": "12", body: "x"], rejection: "file “lock”"),
        Contents("another program's file with an entry's name", [entry: "text"], rejection: "file “\(entry)”"),
        Contents(
            "a repository", ["HEAD": "ref", "config": "x", "index": "DIRC", "lock": ""],
            rejection: "it contains “HEAD”"),
        Contents("a project", [".git": "", "lock": "", "index": ""], rejection: "it contains “.git”"),
        Contents("a queue of a user's", ["queue.json": "[]"], rejection: "it contains “queue.json”"),
        Contents("a user's notes", ["notes.txt": "mine"], rejection: "it contains “notes.txt”"),
        Contents(
            "an offline queue", ["lock": "123456789012MRT:request\n"],
            rejection: "it is the directory of an offline queue"),
        Contents(
            "a download queue, and an entry", ["lock": "123456789012MRT:item\n", entry: "MRTe"],
            rejection: "it is the directory of a download queue"),
    ]

    @Test(
        "A new or empty directory or one of a cache is accepted, and others are rejected unchanged",
        arguments: contents)
    func taken(_ contents: Contents) throws {
        let scene = try CacheDirectoryScene()
        for (name, text) in contents.files { try scene.write(Array(text.utf8), to: name) }
        guard let rejection = contents.rejection else {
            let cache = try scene.cache()
            #expect(try scene.contents("lock").starts(with: DirectoryKind.cache.mark) || cache.put("a"))
            #expect(cache.put("b") && cache.seed(of: "b") == 1)
            #expect(try scene.contents("lock").starts(with: DirectoryKind.cache.mark))
            _ = try scene.cache()
            _ = try DiskCache(existing: scene.path)
            return
        }
        let error = #expect(throws: CacheDirectoryError.self) { try scene.cache() }
        #expect(
            error?.description.contains(rejection) == true && error?.description.contains(scene.path) == true)
        let other = #expect(throws: CacheOpeningError.self) { try DiskCache(existing: scene.path) }
        #expect(other?.description.contains(rejection) == true)
        #expect(try scene.names == contents.files.keys.sorted())
        for (name, text) in contents.files { #expect(try scene.contents(name) == Array(text.utf8)) }
    }

    /// Returns whether a cache reported that its directory cannot be used.
    private func isUnavailable(_ scene: CacheDirectoryScene) -> Bool {
        scene.events.contains { if case .unavailable = $0 { true } else { false } }
    }

    @Test(
        "A link, a directory or a pipe instead of a cache file is rejected unchanged",
        arguments: ["lock", "index"], ["link", "loose link", "directory", "pipe"])
    func things(_ name: String, _ thing: String) throws {
        let scene = try CacheDirectoryScene()
        let target = try CacheDirectoryScene()
        try target.write(Array(name == "lock" ? "MRTl".utf8 : "MRTi".utf8), to: "target")
        let path = "\(scene.path)/\(name)"
        switch thing {
        case "directory": try LinuxFileSystem().makeDirectory(path)
        case "pipe": #expect(unsafe mkfifo(path, 0o600) == 0)
        default:
            try FileManager.default.createSymbolicLink(
                atPath: path, withDestinationPath: target.path + (thing == "link" ? "/target" : "/none"))
        }
        let error = #expect(throws: CacheDirectoryError.self) { try scene.cache() }
        #expect(error?.description.contains("“\(name)”") == true)
        #expect(throws: CacheOpeningError.self) { try DiskCache(existing: scene.path) }
        #expect(try scene.names == [name] && target.names == ["target"])
        #expect(try target.contents("target").count == 4)
    }

    @Test("An unreadable directory is left unchanged", arguments: ["lock", "index", ""])
    func unreadable(_ name: String) throws {
        let scene = try CacheDirectoryScene()
        for name in ["index", "lock"] { try scene.write([], to: name) }
        let files = FaultyFileSystem()
        if name.isEmpty {
            files.fail(.init(.names, code: EACCES))
        } else {
            files.fail(.init(.open, path: "/\(name)", code: EACCES))
        }
        let cache = try scene.cache(files: files)
        #expect(!cache.put("a") && !cache.saveIndex())
        #expect(isUnavailable(scene))
        #expect(throws: CacheOpeningError.self) { try DiskCache(existing: scene.path, files: files) }
        #expect(try scene.names == ["index", "lock"])
        for name in ["index", "lock"] { #expect(try scene.contents(name).isEmpty) }
    }

    @Test("A directory is accepted even if syncing the disk fails")
    func unsynced() throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        files.fail(.init(.sync, code: EINVAL))
        let cache = try scene.cache(files: files)
        #expect(try scene.contents("lock") == DirectoryKind.cache.mark)
        #expect(cache.put("a") && !isUnavailable(scene))
    }

    @Test("Nothing is stored while the marker file cannot be written")
    func unmarked() throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        files.fail(.init(.write, path: "/lock", code: EIO))
        let cache = try scene.cache(files: files)
        #expect(!cache.put("a") && !cache.saveIndex() && isUnavailable(scene))
        #expect(try scene.entryFiles.isEmpty)
    }

    @Test("A directory that another program takes over while the cache is open is not written to")
    func replaced() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        #expect(cache.put("a"))
        for name in try scene.names { try LinuxFileSystem().remove("\(scene.path)/\(name)") }
        for name in ["index", "lock"] { try scene.write(Array("theirs".utf8), to: name) }
        #expect(!cache.put("b", count: 50_000) && !cache.saveIndex())
        #expect(try scene.names == ["index", "lock"])
        for name in ["index", "lock"] { #expect(try scene.contents(name) == Array("theirs".utf8)) }
    }
}
