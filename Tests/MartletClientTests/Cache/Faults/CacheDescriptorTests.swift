import FoundationEssentials
import Glibc
import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@testable import MartletCore
@testable import MartletHosts

@Suite("File descriptors of a cache")
struct CacheDescriptorTests {
    /// Returns the files below a directory that this process has open.
    private static func openFiles(below path: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { name in
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
        }.filter { $0.hasPrefix(path + "/") }
    }

    /// Returns the descriptors of a child process, as `ls` lists them: all that are not close-on-exec.
    private static func listing(into path: String) async throws -> String {
        let status = await BlockingThreadPool.shared.run { () -> Int32 in
            var actions = unsafe posix_spawn_file_actions_t()
            unsafe posix_spawn_file_actions_init(&actions)
            defer { unsafe posix_spawn_file_actions_destroy(&actions) }
            unsafe posix_spawn_file_actions_addopen(
                &actions, STDOUT_FILENO, path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            let line = ["ls", "-l", "/proc/self/fd/"]
            var words = unsafe line.map { unsafe strdup($0) } + [nil]
            defer { unsafe words.forEach { unsafe free($0) } }
            var identifier: pid_t = 0
            guard unsafe posix_spawnp(&identifier, "ls", &actions, nil, &words, environ) == 0 else {
                return -1
            }
            var status: Int32 = 0
            while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
            return status
        }
        try #require(status == 0)
        return String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
    }

    @Test("A child process inherits no descriptors of the cache")
    func inherited() async throws {
        let scene = try CacheFaultScene()
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            guard request.path == "/slow" else { return CacheFaultScene.answer(request) }
            return OriginResponse(
                200, headers: ["Cache-Control": "max-age=600"],
                body: .stream(length: 1_600_000) { writer in
                    try await writer.write([UInt8](repeating: 1, count: 1_400_000))
                    try await signals.wait(for: "go")
                    try await writer.write([UInt8](repeating: 1, count: 200_000))
                })
        } run: { origin async throws in
            signals.use(origin)
            let session = scene.session(try await scene.openedCache())
            try await CacheFaultScene.comesBack(1, 2_000_000, session, origin)
            let url = origin.url("/slow")
            let slow = Task { try await session.get(url).body.count }
            try await session.stream(try HTTPRequest(.get, origin, "/1/2000000")) { _, body in
                var count = 0
                for try await piece in body {
                    if count == 0 {
                        // The lock, a body that is read, and one that is written.
                        #expect(
                            await eventually {
                                let names = (try? Self.openFiles(below: scene.path)) ?? []
                                return names.contains { $0.hasSuffix("/lock") }
                                    && names.contains { $0.contains("/new.") }
                                    && names.contains { $0.split(separator: ".").count == 3 }
                            })
                        let listing = try await Self.listing(into: scene.directory.path + "/listing")
                        #expect(listing.contains("->") && !listing.contains(scene.path), "\(listing)")
                    }
                    count += piece.count
                }
                #expect(count == 2_000_000)
            }
            signals.raise("go")
            #expect(try await slow.value == 1_600_000)
        }
        // The descriptors are closed with the cache.
        #expect(await eventually { (try? Self.openFiles(below: scene.path))?.isEmpty == true })
    }
}
