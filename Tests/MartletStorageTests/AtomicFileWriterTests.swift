import Foundation
import MartletStorage
import Testing

@Suite("Atomic file writes")
struct AtomicFileWriterTests {
    /// Runs a closure with a temporary directory and removes the directory afterwards.
    private func withDirectory(_ body: (String) throws -> Void) throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "martlet-\(UUID().uuidString)")
            .path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try body(directory)
    }

    private func names(in directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    }

    @Test("A file gets its name only when it is published")
    func publishes() throws {
        try withDirectory { directory in
            let file = try AtomicFileWriter(path: "\(directory)/a.bin", collision: .fail)
            try file.write([1, 2, 3])
            #expect(!FileManager.default.fileExists(atPath: "\(directory)/a.bin"))
            try file.write([4])
            try file.publish(collision: .fail)
            #expect(try names(in: directory) == ["a.bin"])
            let reader = try FileReader(path: "\(directory)/a.bin")
            #expect(reader.byteCount == 4)
            #expect(try reader.read(at: 1, limit: 10) == [2, 3, 4])
            #expect(try reader.read(at: 4, limit: 10) == [])
        }
    }

    @Test("A file that was not published leaves no file on disk")
    func discards() throws {
        try withDirectory { directory in
            do {
                let file = try AtomicFileWriter(path: "\(directory)/a.bin", collision: .fail)
                try file.write([1])
            }
            #expect(try names(in: directory) == [])
        }
    }

    @Test("A file can be private to its owner, whatever the mode of the previous one was")
    func mode() throws {
        try withDirectory { directory in
            let path = "\(directory)/a.bin"
            for mode: UInt32 in [0o666, 0o600] {
                let file = try AtomicFileWriter(path: path, collision: .replace, mode: mode)
                try file.publish(collision: .replace)
            }
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        }
    }

    @Test("A file that exceeds the limit is not read as a whole")
    func contentsLimit() throws {
        try withDirectory { directory in
            let file = try AtomicFileWriter(path: "\(directory)/a.bin", collision: .fail)
            try file.write([1, 2, 3])
            try file.publish(collision: .fail)
            let reader = try FileReader(path: "\(directory)/a.bin")
            #expect(try reader.contents(limit: 3) == [1, 2, 3])
            #expect(throws: StorageError(operation: "read", path: reader.path, code: EFBIG)) {
                try reader.contents(limit: 2)
            }
        }
    }

    @Test("An existing file is not replaced unless that is allowed")
    func collides() throws {
        try withDirectory { directory in
            let path = "\(directory)/a.bin"
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

    @Test("A file that appears under the name at the last moment is not replaced")
    func collidesLate() throws {
        try withDirectory { directory in
            let path = "\(directory)/a.bin"
            let file = try AtomicFileWriter(path: path, collision: .fail)
            try file.write([1])
            let other = try AtomicFileWriter(path: path, collision: .fail)
            try other.write([2])
            try other.publish(collision: .fail)
            let error = #expect(throws: StorageError.self) { try file.publish(collision: .fail) }
            #expect(error?.code == EEXIST)
            #expect(try FileReader(path: path).read(at: 0, limit: 9) == [2])
            file.discard()
            #expect(try names(in: directory) == ["a.bin"])
        }
    }

    @Test("A symbolic link at the target is replaced, not followed")
    func replacesLinks() throws {
        try withDirectory { directory in
            _ = FileManager.default.createFile(atPath: "\(directory)/canary", contents: Data([9]))
            try FileManager.default.createSymbolicLink(
                atPath: "\(directory)/a.bin", withDestinationPath: "\(directory)/canary")
            let file = try AtomicFileWriter(path: "\(directory)/a.bin", collision: .replace)
            try file.write([1])
            try file.publish(collision: .replace)
            #expect(try FileReader(path: "\(directory)/canary").read(at: 0, limit: 9) == [9])
            #expect(try FileReader(path: "\(directory)/a.bin").read(at: 0, limit: 9) == [1])
        }
    }

    @Test("The error for a missing directory names the file")
    func missingDirectory() throws {
        try withDirectory { directory in
            let error = #expect(throws: StorageError.self) {
                try AtomicFileWriter(path: "\(directory)/none/a.bin", collision: .fail)
            }
            #expect(error?.code == ENOENT)
            #expect(error?.description.contains("none/") == true)
        }
    }

    @Test("A directory and a missing file cannot be read")
    func unreadable() throws {
        try withDirectory { directory in
            #expect(throws: StorageError.self) { try FileReader(path: directory) }
            #expect(throws: StorageError.self) { try FileReader(path: "\(directory)/none") }
        }
    }
}
