import Foundation
import MartletStorage
import MartletTestSupport
import Testing

@Suite("Record directories")
struct RecordDirectoryTests {
    private let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/martlet-records-\(UUID().uuidString)"
    }

    private func open(_ files: any FileSystem = LinuxFileSystem()) throws -> RecordDirectory {
        try RecordDirectory(path: path, kind: "note", hasBodies: true, files: files)
    }

    private func names(_ directory: String = "") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path + directory).sorted().filter { $0 != "lock" }
    }

    private func end() { try? FileManager.default.removeItem(atPath: path) }

    @Test("Records are read as they were written, and are removed together with their bodies")
    func lifetime() throws {
        defer { end() }
        let directory = try open()
        #expect(try directory.numbers() == [])
        let body = try directory.createBody(7)
        try LinuxFileSystem().write(all: [9, 9], to: body, at: 0)
        try directory.finishBody(body)
        try directory.add(7, [1, 2, 3])
        try directory.add(12, [])
        #expect(try directory.numbers() == [7, 12])
        #expect(try directory.read(7, limit: 10) == [1, 2, 3])
        #expect(try directory.read(7, limit: 1) == [1, 2], "one more than the limit shows that it is longer")
        try directory.write(7, [4])
        #expect(try directory.read(7, limit: 10) == [4])
        #expect(try names() == ["12.note", "7.body", "7.note"])
        try directory.remove(7)
        try directory.remove(7)
        #expect(try names() == ["12.note"])
        directory.release()
    }

    @Test("Used record numbers are remembered after a reopen, even if no record is left")
    func numbers() throws {
        defer { end() }
        var directory = try open()
        try directory.add(5, [1])
        try directory.remove(5)
        directory.release()
        directory = try open()
        #expect(try directory.numbers() == [])
        #expect(directory.lastNumber >= 5)
        try directory.add(UInt64.max, [1])
        directory.release()
        directory = try open()
        #expect(try directory.numbers() == [.max])
        #expect(directory.lastNumber == .max)
    }

    @Test("An invalid record and its body are set aside without replacing existing files")
    func setAside() throws {
        defer { end() }
        let directory = try open()
        for contents in [[UInt8(1)], [2]] {
            let body = try directory.createBody(3)
            try directory.finishBody(body)
            try directory.add(3, contents)
            if contents == [1] {
                #expect(try directory.setAside(3) == "\(path)/corrupt/3.note")
            } else {
                #expect(throws: StorageError.self) { try directory.setAside(3) }
            }
        }
        #expect(try names("/corrupt") == ["3.body", "3.note"])
        #expect(try Data(contentsOf: URL(fileURLWithPath: "\(path)/corrupt/3.note")) == Data([1]))
        #expect(try names() == ["3.body", "3.note", "corrupt"])
    }

    @Test("A write that fails at any call retains the previous content and nothing else")
    func failingWrites() throws {
        defer { end() }
        for call in [FaultyFileSystem.Call.create, .write, .sync, .rename] {
            let files = FaultyFileSystem()
            let directory = try open(files)
            _ = try directory.numbers()
            try directory.add(1, [1])
            files.fail(FaultyFileSystem.Fault(call, path: ".note", times: 1, code: ENOSPC))
            #expect(throws: StorageError.self, "\(call)") { try directory.write(1, [2]) }
            #expect(try directory.read(1, limit: 9) == [1])
            files.fail(FaultyFileSystem.Fault(call, path: ".note", times: 1, code: ENOSPC))
            #expect(throws: StorageError.self, "\(call)") { try directory.add(2, [2]) }
            #expect(try names() == ["1.note"])
            try directory.remove(1)
            directory.release()
        }
    }

    @Test("Only one owner can open the directory at a time")
    func lock() throws {
        defer { end() }
        let directory = try open()
        #expect(throws: RecordDirectory.OpenError.inUse) { try open() }
        directory.release()
        (try open()).release()
    }
}
