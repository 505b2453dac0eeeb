import FoundationEssentials
import Glibc
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import SystemPackage
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Requests past a cache whose folder is not what it should be")
struct CacheFolderFaultTests {
    @Test("A folder that is removed in use is made anew, and nobody else's to read")
    func removed() async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            let session = scene.session(try await scene.openedCache())
            try await CacheFaultScene.get(1, 100, session, origin)
            try await CacheFaultScene.get(2, 100_000, session, origin)
            for _ in 0..<3 {
                try scene.remove()
                #expect(try await CacheFaultScene.get(1, 100, session, origin) == .network)
                #expect(try await CacheFaultScene.get(2, 100_000, session, origin) == .network)
                #expect(try await CacheFaultScene.get(1, 100, session, origin) == .cache)
                #expect(try await CacheFaultScene.get(2, 100_000, session, origin) == .cache)
            }
            let access = try LinuxFileSystem().status(at: scene.path).access
            #expect(!access.isReadableByOthers && !access.isWritableByOthers)
        }
    }

    @Test("A folder that is removed while a body streams into it fails nothing")
    func removedInBetween() async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            let session = scene.session(try await scene.openedCache())
            try await session.stream(try HTTPRequest(.get, origin, "/1/2000000")) { _, body in
                var received: [UInt8] = []
                for try await piece in body {
                    if received.isEmpty {
                        #expect(await eventually { scene.names.contains { $0.hasPrefix("new.") } })
                        // What is written meanwhile may come between.
                        #expect(await eventually { (try? scene.remove()) != nil || scene.names.isEmpty })
                    }
                    received += piece
                }
                #expect(received.count == 2_000_000)
                #expect(TestPattern.firstMismatch(in: received, at: 1) == nil)
            }
            try await CacheFaultScene.comesBack(1, 2_000_000, session, origin)
            #expect(await scene.isTidy())
        }
    }

    @Test("A folder in whose place is a file leaves requests uncached, until it is one again")
    func replaced() async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            let session = scene.session(try await scene.openedCache())
            try await CacheFaultScene.get(1, 100, session, origin)
            try scene.remove()
            try Data([1]).write(to: URL(fileURLWithPath: scene.path))
            for _ in 0..<3 {
                #expect(try await CacheFaultScene.get(1, 100, session, origin) == .network)
                #expect(try await CacheFaultScene.get(2, 100_000, session, origin) == .network)
            }
            #expect(await scene.hears { $0.isUnavailable })
            try scene.remove()
            try await CacheFaultScene.comesBack(1, 100, session, origin)
            try await CacheFaultScene.comesBack(2, 100_000, session, origin)
            #expect(await scene.hears { $0 == .recovered })
        }
    }

    @Test(
        "A cache that is opened where a file is opens, says so, and works once there is room for a folder"
    )
    func openedOnFile() async throws {
        let scene = try CacheFaultScene()
        try Data([1]).write(to: URL(fileURLWithPath: scene.path))
        try await CacheFaultScene.withOrigin { origin in
            let session = scene.session(try scene.cache())
            #expect(try await CacheFaultScene.get(1, 100, session, origin) == .network)
            #expect(try await CacheFaultScene.get(1, 100, session, origin) == .network)
            #expect(try Data(contentsOf: URL(fileURLWithPath: scene.path)) == Data([1]))
            try scene.remove()
            try await CacheFaultScene.comesBack(1, 100, session, origin)
        }
    }

    @Test("With memory, a cache whose folder is gone for good still serves")
    func memoryAlone() async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            scene.files.fail(.init(nil, code: EROFS))
            let session = scene.session(try scene.cache(memory: .mebibytes(8)))
            try await CacheFaultScene.comesBack(1, 100, session, origin)
            try await CacheFaultScene.comesBack(2, 100_000, session, origin)
            #expect(scene.names.isEmpty)
        }
    }

    @Test(
        "A folder that others may read or write is refused, with what to do about it",
        arguments: [0o750, 0o707])
    func accessibleByOthers(_ mode: Int) throws {
        let scene = try CacheFaultScene()
        try FileManager.default.createDirectory(atPath: scene.path, withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: scene.path)
        let error = #expect(throws: CacheDirectoryError.self) { try scene.cache() }
        #expect(error == .accessibleByOthers(path: scene.path))
        #expect(error?.description.contains("\(scene.path): ") == true)
        #expect(error?.description.contains("chmod 700") == true)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: scene.path)
        _ = try scene.cache()
    }

    @Test("A folder of another user's is refused")
    func ownedByAnotherUser() throws {
        let scene = try CacheFaultScene()
        var path = "/usr"
        if geteuid() == 0 {
            try FileManager.default.createDirectory(atPath: scene.path, withIntermediateDirectories: true)
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: scene.path)
            try FileManager.default.setAttributes([.ownerAccountID: 4242], ofItemAtPath: scene.path)
            path = scene.path
        }
        #expect(throws: CacheDirectoryError.ownedByAnotherUser(path: path)) {
            try ResponseCache.at(FilePath(path))
        }
    }

    @Test("The files of a cache are their owner's alone")
    func modes() async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            let cache = try await scene.openedCache()
            let session = scene.session(cache)
            try await CacheFaultScene.get(1, 100, session, origin)
            try await CacheFaultScene.get(2, 100_000, session, origin)
            await cache.flush()
            #expect(scene.names.count == 5)
            for name in scene.names {
                let access = try LinuxFileSystem().status(at: "\(scene.path)/\(name)").access
                #expect(!access.isReadableByOthers && !access.isWritableByOthers, "\(name)")
            }
        }
    }

    @Test(
        "Without room on disk and in memory nothing is stored, and with room in memory that is all",
        arguments: [0, 8])
    func noRoom(_ mebibytes: Int) async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            let session = scene.session(try scene.cache(memory: .mebibytes(mebibytes), disk: .bytes(0)))
            try await CacheFaultScene.get(1, 100, session, origin)
            let source = try await CacheFaultScene.get(1, 100, session, origin)
            #expect(source == (mebibytes == 0 ? .network : .cache))
            #expect(scene.entryFiles.isEmpty)
        }
    }
}
