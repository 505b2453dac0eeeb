import Foundation
import MartletTestSupport
import Testing

@testable import MartletStorage

@Suite("File systems")
struct FileSystemTests {
    /// Runs a closure with a temporary directory and removes the directory afterwards.
    private func withDirectory(_ body: (String) throws -> Void) throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "martlet-\(UUID().uuidString)")
            .path
        try LinuxFileSystem().makeDirectory(directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try body(directory)
    }

    @Test("A file is created private to its owner, written, truncated, renamed, listed and removed")
    func life() throws {
        try withDirectory { directory in
            let files = LinuxFileSystem()
            let file = try files.open("\(directory)/a", for: .creating)
            #expect(throws: StorageError.self) { try files.open("\(directory)/a", for: .creating) }
            try files.write(all: [1, 2, 3], to: file, at: 0)
            #expect(try files.read(file, count: 9, at: 1) == [2, 3])
            try files.truncate(file, to: 2)
            let status = try files.status(of: file)
            #expect(status.byteCount == 2)
            #expect(!status.access.isReadableByOthers)
            try files.rename("\(directory)/a", to: "\(directory)/b")
            #expect(try files.names(inDirectory: directory) == ["b"])
            #expect(try files.status(at: "\(directory)/b").identity == status.identity)
            #expect(try files.status(at: directory).kind == .directory)
            try files.remove("\(directory)/b")
            #expect(try files.names(inDirectory: directory).isEmpty)
            #expect(try files.read(file, count: 9, at: 0) == [1, 2])
        }
    }

    @Test("Preallocated space counts as allocated size, but not as length")
    func allocates() throws {
        try withDirectory { directory in
            let files = LinuxFileSystem()
            let file = try files.open("\(directory)/a", for: .creating)
            try files.allocate(100_000, for: file)
            #expect(try files.status(of: file).byteCount == 0)
            try files.truncate(file, to: 0)
            #expect(try files.status(of: file).allocatedByteCount <= 4096)
        }
    }

    /// Returns whether a directory's files are stored in memory with a limit.
    private static func isInMemory(_ directory: String) -> Bool {
        let path = "\(directory)/martlet-\(UUID().uuidString)"
        guard let file = try? LinuxFileSystem().open(path, for: .creating) else { return false }
        defer { try? LinuxFileSystem().remove(path) }
        return LinuxFileSystem.memory(of: file).map { $0 < .max } ?? false
    }

    @Test(
        "A file in memory is not preallocated, and too little space is reported immediately",
        .enabled(if: isInMemory("/dev/shm")))
    func allocatesInMemory() throws {
        let files = LinuxFileSystem()
        let path = "/dev/shm/martlet-\(UUID().uuidString)"
        let file = try files.open(path, for: .creating)
        defer { try? files.remove(path) }
        try files.allocate(100_000, for: file)
        #expect(try files.status(of: file).allocatedByteCount == 0)
        let room = try #require(LinuxFileSystem.memory(of: file))
        #expect {
            try files.allocate(room + (1 << 40), for: file)
        } throws: {
            ($0 as? StorageError)?.isOutOfSpace == true
        }
    }

    @Test(
        "A nonblocking file system reads cached bytes or reports that it would block, and follows no link"
    )
    func atHand() throws {
        try withDirectory { directory in
            let linux = LinuxFileSystem()
            let file = try linux.open("\(directory)/a", for: .creating)
            try linux.write(all: [1, 2, 3], to: file, at: 0)
            try FileManager.default.createSymbolicLink(
                atPath: "\(directory)/b", withDestinationPath: "\(directory)/a")
            // The test does not know whether this machine's file system supports nonblocking reads.
            let files = try #require(
                NonBlockingFileSystem(of: FaultyFileSystem(linux, isAtHand: true), inDirectory: directory))
            for files in [files, NonBlockingFileSystem(of: linux, inDirectory: directory) ?? files] {
                do throws(StorageError) {
                    let opened = try files.open("\(directory)/a", for: .reading)
                    #expect(try files.status(of: opened).byteCount == 3)
                    #expect(try files.read(opened, count: 9, at: 1) == [2, 3])
                    #expect(try files.read(opened, count: 9, at: 3) == [])
                } catch {
                    #expect(error.code == EAGAIN)
                }
                #expect(throws: StorageError.self) { try files.open("\(directory)/b", for: .reading) }
                #expect(throws: StorageError.self) { try files.open("\(directory)/c", for: .reading) }
                #expect(throws: StorageError.self) { try files.open("\(directory)/c", for: .creating) }
                #expect(throws: StorageError.self) { try files.open("\(directory)/c", for: .updating) }
                // The type has no calls that change anything.
                #expect(!((files as Any) is any FileSystem))
            }
            #expect(try linux.read(file, count: 9, at: 0) == [1, 2, 3])
            #expect(try linux.names(inDirectory: directory).sorted() == ["a", "b"])
        }
    }

    @Test(
        "Directories on other than local disks have no nonblocking reads",
        arguments: ["/proc", "/nonexistent"])
    func notAtHand(directory: String) {
        #expect(!LinuxFileSystem().supportsNonBlockingReads(inDirectory: directory))
        #expect(NonBlockingFileSystem(of: LinuxFileSystem(), inDirectory: directory) == nil)
    }

    @Test("A symbolic link is not opened for any purpose")
    func links() throws {
        try withDirectory { directory in
            let files = LinuxFileSystem()
            try FileManager.default.createSymbolicLink(
                atPath: "\(directory)/a", withDestinationPath: "\(directory)/canary")
            for opening: FileOpening in [.reading, .creating, .updating] {
                #expect(throws: StorageError.self) { try files.open("\(directory)/a", for: opening) }
            }
            #expect(try files.names(inDirectory: directory) == ["a"])
        }
    }

    @Test("A lock is held by one file at a time and ends with it")
    func locks() throws {
        try withDirectory { directory in
            let files = LinuxFileSystem()
            let second = try files.open("\(directory)/a", for: .updating)
            do {
                let first = try files.open("\(directory)/a", for: .updating)
                #expect(try files.tryLock(first))
                #expect(try !files.tryLock(second))
            }
            #expect(try files.tryLock(second))
        }
    }

    @Test("Closing ends a lock even if a child process has a copy of the descriptor")
    func lockOfCopy() throws {
        try withDirectory { directory in
            let files = LinuxFileSystem()
            let first = try files.open("\(directory)/a", for: .updating)
            #expect(try files.tryLock(first))
            let copy = dup(first.descriptor)
            defer { close(copy) }
            first.close()
            #expect(try files.tryLock(try files.open("\(directory)/a", for: .updating)))
        }
    }

    @Test("An injected fault affects only the calls it was made for")
    func faults() throws {
        try withDirectory { directory in
            let files = FaultyFileSystem()
            files.fail(.init(.write, path: "/a", after: 1, times: 1, code: EIO))
            let file = try files.open("\(directory)/a", for: .creating)
            try files.write(all: [1], to: file, at: 0)
            let error = #expect(throws: StorageError.self) { try files.write(all: [2], to: file, at: 1) }
            #expect(error?.code == EIO)
            try files.write(all: [3], to: file, at: 1)
            #expect(try files.read(file, count: 9, at: 0) == [1, 3])
            #expect(files.count(of: .write) == 3)
        }
    }

    @Test("Short reads and writes are completed")
    func shortPieces() throws {
        try withDirectory { directory in
            let files = FaultyFileSystem()
            files.limitPieces(to: 3)
            let file = try files.open("\(directory)/a", for: .creating)
            try files.write(all: [UInt8](0..<100), to: file, at: 0)
            #expect(try files.read(file, count: 200, at: 0) == [UInt8](0..<100))
            #expect(files.count(of: .write) == 34)
        }
    }

    @Test("A full disk accepts the bytes that fit and no more")
    func full() throws {
        try withDirectory { directory in
            let files = FaultyFileSystem()
            files.fill(after: 4)
            let file = try files.open("\(directory)/a", for: .creating)
            let error = #expect(throws: StorageError.self) {
                try files.write(all: [1, 2, 3, 4, 5], to: file, at: 0)
            }
            #expect(error?.isOutOfSpace == true)
            #expect(try files.read(file, count: 9, at: 0) == [1, 2, 3, 4])
            files.mend()
            try files.write(all: [5], to: file, at: 4)
        }
    }
}
