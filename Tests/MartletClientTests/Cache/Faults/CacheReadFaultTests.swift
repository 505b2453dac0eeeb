import Glibc
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import SystemPackage
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts
@testable import MartletStreams

@Suite("Requests through a cache with read errors")
struct CacheReadFaultTests {
    private static let size = 1_000_000

    @Test(
        "An entry that cannot be read is a reported miss and is replaced",
        arguments: [100, 100_000])
    func entry(_ count: Int) async throws {
        try await CacheFaultScene.withSession { scene, session, origin in
            try await CacheFaultScene.comesBack(1, count, session, origin)
            scene.files.fail(.init(.read, code: EIO))
            for _ in 0..<3 {
                #expect(try await CacheFaultScene.get(1, count, session, origin) == .network)
            }
            scene.files.mend()
            try await CacheFaultScene.comesBack(1, count, session, origin)
            #expect(await scene.hears { $0.isUnavailable })
            #expect(!scene.events.contains { $0.isDamage })
        }
    }

    @Test("A body that cannot be read from its start is a miss for each request")
    func bodyFromTheStart() async throws {
        try await CacheFaultScene.withSession { scene, session, origin in
            try await CacheFaultScene.get(1, CacheReadFaultTests.size, session, origin)
            let name = try #require(scene.bodyFiles.first)
            scene.files.fail(.init(.read, path: name, code: EIO))
            // The stored body cannot be replaced either.
            scene.files.fail(.init(.create, path: "new.", code: EROFS))
            for _ in 0..<2 {
                #expect(
                    try await CacheFaultScene.get(1, CacheReadFaultTests.size, session, origin) == .network)
            }
            #expect(origin.requests.count == 3)
            scene.files.mend()
            #expect(try await CacheFaultScene.get(1, CacheReadFaultTests.size, session, origin) == .cache)
        }
    }

    @Test("A damaged body that cannot be removed is a miss for each request")
    func stuckDamage() async throws {
        try await CacheFaultScene.withSession { scene, session, origin in
            try await CacheFaultScene.get(1, 100_000, session, origin)
            let name = try #require(scene.bodyFiles.first)
            var bytes = try scene.contents(name)
            bytes[500] ^= 1
            try scene.write(bytes, to: name)
            for call in [FaultyFileSystem.Call.remove, .create, .rename] {
                scene.files.fail(.init(call, code: EROFS))
            }
            for _ in 0..<2 { #expect(try await CacheFaultScene.get(1, 100_000, session, origin) == .network) }
            #expect(await scene.hears { $0.isDamage })
            scene.files.mend()
            try await CacheFaultScene.comesBack(1, 100_000, session, origin)
        }
    }

    @Test("A body with a read error in the middle is fetched again, for a get and for a download")
    func middle() async throws {
        let scene = try CacheFaultScene()
        let size = CacheReadFaultTests.size
        try await CacheFaultScene.withOrigin { origin in
            let session = scene.session(try await scene.openedCache())
            try await CacheFaultScene.get(1, size, session, origin)
            for isDownload in [false, true] {
                let name = try #require(scene.bodyFiles.first)
                scene.files.fail(.init(.read, path: name, after: 1, code: EIO))
                if isDownload {
                    let path = FilePath(scene.directory.path).appending("whole")
                    try await session.save(
                        HTTPRequest(method: .get, url: origin.url("/1/\(size)")), to: path, overwrites: false)
                    let file = try LinuxFileSystem().open(path.string, for: .reading)
                    let bytes = try LinuxFileSystem().read(file, count: size + 1, at: 0)
                    #expect(bytes.count == size && TestPattern.firstMismatch(in: bytes, at: 1) == nil)
                } else {
                    #expect(try await CacheFaultScene.get(1, size, session, origin) == .network)
                }
                scene.files.mend()
                #expect(try await CacheFaultScene.get(1, size, session, origin) == .cache)
            }
            #expect(origin.requests.count == 3)
        }
    }

    @Test(
        "A streamed body ends with cachedBodyCorrupted at the first read error",
        arguments: [true, false])
    func streamed(isFlipped: Bool) async throws {
        let scene = try CacheFaultScene()
        let size = CacheReadFaultTests.size
        try await CacheFaultScene.withOrigin { origin in
            let session = scene.session(try await scene.openedCache())
            try await CacheFaultScene.get(1, size, session, origin)
            let name = try #require(scene.bodyFiles.first)
            if isFlipped {
                var bytes = try scene.contents(name)
                bytes[size - 1] ^= 4
                try scene.write(bytes, to: name)
            } else {
                scene.files.fail(.init(.read, path: name, after: 2, code: EIO))
            }
            var received: [UInt8] = []
            var code: HTTPError.Code?
            do {
                try await session.stream(try HTTPRequest(.get, origin, "/1/\(size)")) { _, body in
                    for try await piece in body { received += piece }
                }
            } catch let error as HTTPError {
                code = error.code
            }
            #expect(code == .cachedBodyCorrupted)
            #expect(received.count >= 256 << 10 && received.count < size)
            #expect(TestPattern.firstMismatch(in: received, at: 1) == nil)
            scene.files.mend()
            #expect(
                try await CacheFaultScene.get(1, size, session, origin) == (isFlipped ? .network : .cache))
            #expect(try await CacheFaultScene.get(1, size, session, origin) == .cache)
            if isFlipped { #expect(await scene.hears { $0.isDamage }) }
        }
    }

    @Test("Read errors do not fail readers of a body that is still being received")
    func readAlong() async throws {
        let scene = try CacheFaultScene()
        let size = 4 << 20
        try await CacheFaultScene.withOrigin { origin in
            let session = scene.session(try await scene.openedCache())
            scene.files.fail(.init(.read, path: "new.", code: EIO))
            let isRight = try await session.stream(try HTTPRequest(.get, origin, "/1/\(size)")) { _, body in
                var count = 0
                var isRight = true
                for try await piece in body {
                    isRight = isRight && TestPattern.firstMismatch(in: piece, at: UInt64(count + 1)) == nil
                    // A slow reader: the bytes received ahead of it have been written by now.
                    if count < 1 << 20 { _ = await settled { UInt64(scene.files.count(of: .write)) } }
                    count += piece.count
                }
                return isRight && count == size
            }
            #expect(isRight)
            scene.files.mend()
            #expect(try await CacheFaultScene.get(1, size, session, origin) == .cache)
        }
    }

    @Test("A reader that joins a transfer and cannot read its first part sends its own request")
    func joining() async throws {
        let scene = try CacheFaultScene()
        let size = 4 << 20
        try await CacheFaultScene.withOrigin { origin in
            let session = scene.session(try await scene.openedCache())
            scene.files.fail(.init(.read, path: "new.", code: EIO))
            try await session.stream(try HTTPRequest(.get, origin, "/1/\(size)")) { _, body in
                var count = 0
                for try await piece in body {
                    count += piece.count
                    if count >= 1 << 20 { break }
                }
                #expect(await eventually { scene.files.count(of: .write) > 2 })
                try await CacheFaultScene.get(1, size, session, origin)
            }
            scene.files.mend()
            try await CacheFaultScene.comesBack(1, size, session, origin)
        }
    }
}
