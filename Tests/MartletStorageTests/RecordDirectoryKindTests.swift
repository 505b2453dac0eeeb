import Foundation
import Glibc
import MartletStorage
import MartletTestSupport
import Testing

@Suite("Directories that a record store accepts")
struct RecordDirectoryKindTests {
    /// The files in a directory before it is opened for records.
    struct Contents: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let files: [String: [UInt8]]
        /// A part of the reason; `nil` for a directory that is accepted.
        var rejection: String?

        init(_ name: String, _ files: [String: [UInt8]], rejection: String? = nil) {
            testDescription = name
            self.files = files
            self.rejection = rejection
        }
    }

    /// The lock file of an earlier version, which contains the number 5.
    private static var earlierLock: [UInt8] {
        var writer = RecordWriter()
        writer.write(UInt64(5))
        writer.write(RecordChecksum(writer.bytes.span).value)
        return writer.bytes
    }

    /// Returns the directories that each kind of record store accepts and rejects.
    static func contents(_ kind: String) -> [Contents] {
        let other = kind == "item" ? "request" : "item"
        let record = Array("MRT, and more".utf8)
        let zeros = [UInt8](repeating: 0, count: 600)
        return [
            Contents("nothing", [:]),
            Contents("an empty lock", ["lock": []]),
            Contents("half a lock", ["lock": [0, 0, 0]]),
            Contents("an earlier lock", ["lock": earlierLock]),
            Contents(
                "an earlier lock, records and notes", ["lock": earlierLock, "3.\(kind)": [1], "n": [1]]),
            Contents(
                "records and a damaged lock",
                ["3.\(kind)": record, "9.\(kind).new": [], "lock": [9, 9]]),
            Contents("records without a lock", ["3.\(kind)": record]),
            Contents(
                "an empty lock and half-written files",
                ["3.\(kind)": zeros, "4.\(kind)": [], "9.\(kind).new": Array("MR".utf8), "lock": []]),
            Contents("zeros", ["3.\(kind).new": zeros, "lock": zeros]),
            Contents(
                "the mark and notes",
                ["lock": earlierLock + DirectoryKind.records(kind).mark, "notes.txt": [1]]),
            Contents("another program's lock", ["lock": Array("1234".utf8)], rejection: "file “lock”"),
            Contents(
                "another program's lock of twelve bytes", ["lock": Array("twelve bytes".utf8)],
                rejection: "file “lock”"),
            Contents(
                "a project", ["index": [1], "lock": Array("1234".utf8), "queue.json": [2]],
                rejection: "it contains “index”"),
            Contents(
                "another program's lock, and an empty record", ["lock": [7], "1.\(kind)": []],
                rejection: "file “lock”"),
            Contents("a user's notes", ["notes.txt": [1]], rejection: "it contains “notes.txt”"),
            Contents("a user's file with a record's name", ["1.\(kind)": [1]], rejection: "“1.\(kind)”"),
            Contents(
                "a user's file that begins with zeros", ["1.\(kind)": [0, 0, 0, 1], "lock": []],
                rejection: "“1.\(kind)”"),
            Contents("a user's bodies", ["1.body": [1], "lock": []], rejection: "it contains “1.body”"),
            Contents("a user's file “corrupt”", ["corrupt": [1]], rejection: "it contains “corrupt”"),
            Contents(
                "notes, records and a foreign lock", ["2.\(kind)": [1], "a": [1], "lock": [7]],
                rejection: "“2.\(kind)”"),
            Contents("records of another kind", ["1.\(other)": record], rejection: "it contains “1.\(other)”"),
            Contents(
                "the mark of another kind", ["lock": earlierLock + DirectoryKind.records(other).mark],
                rejection: "it is the directory of"),
            Contents("a response cache", ["lock": DirectoryKind.cache.mark], rejection: "a response cache"),
        ]
    }

    @Test(
        "A new or empty directory or one of its kind is accepted, and others are rejected unchanged",
        arguments: ["item", "request"])
    func taken(_ kind: String) throws {
        let files = LinuxFileSystem()
        for contents in RecordDirectoryKindTests.contents(kind) {
            let path = FileManager.default.temporaryDirectory.path + "/martlet-kind-\(UUID().uuidString)"
            try files.makeDirectory(path)
            defer { try? FileManager.default.removeItem(atPath: path) }
            for (name, bytes) in contents.files {
                try Data(bytes).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
            }
            func read(_ name: String) -> [UInt8] {
                Array((try? Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)"))) ?? Data())
            }
            guard let rejection = contents.rejection else {
                for _ in 0..<2 {
                    let directory = try RecordDirectory(path: path, kind: kind, hasBodies: true, files: files)
                    let mark = read("lock").dropFirst(DirectoryKind.recordMarkOffset)
                    #expect(mark.starts(with: DirectoryKind.records(kind).mark), "\(contents.testDescription)")
                    _ = try directory.numbers()
                    let isKnown = contents.files["lock"]?.starts(with: RecordDirectoryKindTests.earlierLock)
                    if isKnown == true { #expect(directory.lastNumber >= 5) }
                    try directory.add(directory.lastNumber + 1, [1])
                    directory.release()
                }
                continue
            }
            let error = #expect(throws: RecordDirectory.OpenError.self) {
                try RecordDirectory(path: path, kind: kind, hasBodies: true, files: files)
            }
            guard case .otherFiles(let reason) = error else {
                Issue.record("\(contents.testDescription): \(String(describing: error))")
                continue
            }
            #expect(reason.contains(rejection), "\(contents.testDescription): \(reason)")
            #expect(try files.names(inDirectory: path).sorted() == contents.files.keys.sorted())
            for (name, bytes) in contents.files { #expect(read(name) == bytes) }
        }
    }

    /// Runs a test in a new directory.
    private func inDirectory(_ body: (String) throws -> Void) throws {
        let path = FileManager.default.temporaryDirectory.path + "/martlet-kind-\(UUID().uuidString)"
        try LinuxFileSystem().makeDirectory(path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(path)
    }

    @Test(
        "A link, a directory or a pipe instead of a record file is rejected unchanged",
        arguments: ["lock", "1.item"], ["link", "directory", "pipe"])
    func things(_ name: String, _ thing: String) throws {
        try inDirectory { path in
            try inDirectory { other in
                try Data(RecordDirectoryKindTests.earlierLock).write(to: URL(fileURLWithPath: "\(other)/target"))
                switch thing {
                case "directory": try LinuxFileSystem().makeDirectory("\(path)/\(name)")
                case "pipe": #expect(unsafe mkfifo("\(path)/\(name)", 0o600) == 0)
                default:
                    try FileManager.default.createSymbolicLink(
                        atPath: "\(path)/\(name)", withDestinationPath: "\(other)/target")
                }
                let error = #expect(throws: RecordDirectory.OpenError.self) {
                    try RecordDirectory(path: path, kind: "item", files: LinuxFileSystem())
                }
                guard case .otherFiles(let reason) = error, reason.contains("“\(name)”") else {
                    Issue.record("\(name), \(thing): \(String(describing: error))")
                    return
                }
                #expect(try LinuxFileSystem().names(inDirectory: path) == [name])
            }
        }
    }

    @Test("An unreadable directory is left unchanged", arguments: ["lock", "1.item"])
    func unreadable(_ name: String) throws {
        try inDirectory { path in
            try Data().write(to: URL(fileURLWithPath: "\(path)/\(name)"))
            let files = FaultyFileSystem()
            files.fail(.init(.open, path: "/\(name)", code: EACCES))
            let error = #expect(throws: RecordDirectory.OpenError.self) {
                try RecordDirectory(path: path, kind: "item", files: files)
            }
            guard case .storage(let fault) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(fault.code == EACCES && fault.path == "\(path)/\(name)")
            #expect(try LinuxFileSystem().names(inDirectory: path) == [name])
        }
    }

    @Test("No record is created until the marker file is on disk")
    func unmarked() throws {
        try inDirectory { path in
            let files = FaultyFileSystem()
            files.fail(.init(.sync, times: 2, code: EIO))
            let directory = try RecordDirectory(path: path, kind: "request", hasBodies: true, files: files)
            #expect(throws: StorageError.self) { try directory.createBody(1) }
            #expect(try LinuxFileSystem().names(inDirectory: path) == ["lock"])
            _ = try directory.createBody(1)
            directory.release()
            let next = try RecordDirectory(
                path: path, kind: "request", hasBodies: true, files: LinuxFileSystem())
            #expect(try next.numbers().isEmpty)
        }
    }
}
