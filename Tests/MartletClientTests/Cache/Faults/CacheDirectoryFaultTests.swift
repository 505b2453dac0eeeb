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

@Suite("Requests through a cache whose directory is invalid")
struct CacheDirectoryFaultTests {
    @Test("A directory that is removed in use is created again, readable only by its owner")
    func removed() async throws {
        try await CacheFaultScene.withSession { scene, session, origin in
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

    @Test("Removing the directory during a store does not fail the request")
    func removedInBetween() async throws {
        try await CacheFaultScene.withSession { scene, session, origin in
            try await session.stream(try HTTPRequest(.get, origin, "/1/2000000")) { _, body in
                var received: [UInt8] = []
                for try await piece in body {
                    if received.isEmpty {
                        #expect(await eventually { scene.names.contains { $0.hasPrefix("new.") } })
                        // A concurrent write can make the removal fail, so it is repeated.
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

    @Test("While a file replaces the directory, responses are not cached, and the cache recovers afterwards")
    func replaced() async throws {
        try await CacheFaultScene.withSession { scene, session, origin in
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
        "A cache that is opened on a file's path works once the file is removed"
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

    @Test("Without a usable directory, a cache with memory still serves from memory")
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
        "A directory that others can read or write is rejected with an error that suggests chmod",
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

    @Test("A directory of another user is rejected")
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

    @Test("The files of a cache are accessible only to their owner")
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
        "Without disk capacity, responses are stored only in memory, if there is any",
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
