import Foundation
import MartletStorage
import Testing

@Suite("Publishing files")
struct AtomicFileWriterTests {
    /// Runs a closure with a folder of its own, which is removed afterwards.
    private func withFolder(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "martlet-\(UUID().uuidString)")
            .path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try body(folder)
    }

    private func names(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    }

    @Test("A file has its name only once it is published")
    func publishes() throws {
        try withFolder { folder in
            let file = try AtomicFileWriter(path: "\(folder)/a.bin", collision: .fail)
            try file.write([1, 2, 3])
            #expect(!FileManager.default.fileExists(atPath: "\(folder)/a.bin"))
            try file.write([4])
            try file.publish(collision: .fail)
            #expect(try names(in: folder) == ["a.bin"])
            let reader = try FileReader(path: "\(folder)/a.bin")
            #expect(reader.byteCount == 4)
            #expect(try reader.read(at: 1, limit: 10) == [2, 3, 4])
            #expect(try reader.read(at: 4, limit: 10) == [])
        }
    }

    @Test("A file that was not published leaves nothing behind")
    func discards() throws {
        try withFolder { folder in
            do {
                let file = try AtomicFileWriter(path: "\(folder)/a.bin", collision: .fail)
                try file.write([1])
            }
            #expect(try names(in: folder) == [])
        }
    }

    @Test("A file can be for its owner alone, whatever the one in its place was")
    func mode() throws {
        try withFolder { folder in
            let path = "\(folder)/a.bin"
            for mode: UInt32 in [0o666, 0o600] {
                let file = try AtomicFileWriter(path: path, collision: .replace, mode: mode)
                try file.publish(collision: .replace)
            }
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        }
    }

    @Test("A file that is longer than the limit is not read as a whole")
    func contentsLimit() throws {
        try withFolder { folder in
            let file = try AtomicFileWriter(path: "\(folder)/a.bin", collision: .fail)
            try file.write([1, 2, 3])
            try file.publish(collision: .fail)
            let reader = try FileReader(path: "\(folder)/a.bin")
            #expect(try reader.contents(limit: 3) == [1, 2, 3])
            #expect(throws: StorageError(operation: "read", path: reader.path, code: EFBIG)) {
                try reader.contents(limit: 2)
            }
        }
    }

    @Test("A file that has the name is left alone unless it may be replaced")
    func collides() throws {
        try withFolder { folder in
            let path = "\(folder)/a.bin"
            let first = try AtomicFileWriter(path: path, collision: .fail)
            try first.write([1])
            try first.publish(collision: .fail)
            #expect(throws: StorageError.self) { try AtomicFileWriter(path: path, collision: .fail) }
            let second = try AtomicFileWriter(path: path, collision: .replace)
            try second.write([2])
            try second.publish(collision: .replace)
            #expect(try FileReader(path: path).read(at: 0, limit: 9) == [2])
        }
    }

    @Test("A file that takes the name at the last moment is left alone")
    func collidesLate() throws {
        try withFolder { folder in
            let path = "\(folder)/a.bin"
            let file = try AtomicFileWriter(path: path, collision: .fail)
            try file.write([1])
            let other = try AtomicFileWriter(path: path, collision: .fail)
            try other.write([2])
            try other.publish(collision: .fail)
            let error = #expect(throws: StorageError.self) { try file.publish(collision: .fail) }
            #expect(error?.code == EEXIST)
            #expect(try FileReader(path: path).read(at: 0, limit: 9) == [2])
            file.discard()
            #expect(try names(in: folder) == ["a.bin"])
        }
    }

    @Test("A symbolic link in the target's place is replaced, not followed")
    func replacesLinks() throws {
        try withFolder { folder in
            _ = FileManager.default.createFile(atPath: "\(folder)/canary", contents: Data([9]))
            try FileManager.default.createSymbolicLink(
                atPath: "\(folder)/a.bin", withDestinationPath: "\(folder)/canary")
            let file = try AtomicFileWriter(path: "\(folder)/a.bin", collision: .replace)
            try file.write([1])
            try file.publish(collision: .replace)
            #expect(try FileReader(path: "\(folder)/canary").read(at: 0, limit: 9) == [9])
            #expect(try FileReader(path: "\(folder)/a.bin").read(at: 0, limit: 9) == [1])
        }
    }

    @Test("A folder that is not there is an error that names the file")
    func missingFolder() throws {
        try withFolder { folder in
            let error = #expect(throws: StorageError.self) {
                try AtomicFileWriter(path: "\(folder)/none/a.bin", collision: .fail)
            }
            #expect(error?.code == ENOENT)
            #expect(error?.description.contains("none/") == true)
        }
    }

    @Test("A folder and a missing file cannot be read")
    func unreadable() throws {
        try withFolder { folder in
            #expect(throws: StorageError.self) { try FileReader(path: folder) }
            #expect(throws: StorageError.self) { try FileReader(path: "\(folder)/none") }
        }
    }
}
