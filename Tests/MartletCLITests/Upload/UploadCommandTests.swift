import Foundation
import Martlet
import MartletCore
import MartletTesting
import MartletUploads
import Testing

@testable import MartletCLI

@Suite("martlet upload")
struct UploadCommandTests {
    /// A file in a directory of its own.
    private final class Scene {
        let root = FileManager.default.temporaryDirectory.path + "/martlet-upload-\(UUID().uuidString)"
        let bytes = [UInt8]((0..<5000).map { UInt8(truncatingIfNeeded: $0 * 7) })
        var file: String { root + "/file.bin" }

        init() throws {
            try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
            try Data(bytes).write(to: URL(fileURLWithPath: file))
        }

        deinit { try? FileManager.default.removeItem(atPath: root) }
    }

    private func run(_ words: [String]) async throws -> String {
        var reader = CommandLineParser(UploadCommand.options)
        try reader.read(words)
        let group = reader.groups[0]
        let plan = try await UploadPlan(group)
        var configuration = SessionConfiguration.ephemeral
        configuration.authentication = plan.authentication
        let meter = ProgressMeter(form: ProgressStyle(group.global), name: plan.name, url: "")
        let body = try await plan.run(HTTPSession(configuration: configuration), meter)
        return String(decoding: body, as: UTF8.self)
    }

    @Test("A file is uploaded by the protocol of the option, and the response is the output")
    func protocols() async throws {
        let scene = try Scene()
        let store = ResumableUploadStore()
        try await TestOrigin.withOrigin(.plain, handler: .resumableUploads(store)) { origin in
            for options in [["--ietf"], ["--tus", "--chunk-size", "2K"], ["--plain", "-X", "PUT"], []] {
                _ = try await run(options + ["-H", "X-A: 1", scene.file, origin.url("/files")])
            }
            #expect(try await run([scene.file, origin.url("/files")]) == "stored 5000 bytes\n")
        }
        #expect(store.uploads.map(\.kind) == [.ietf, .tus, .plain, .ietf, .ietf])
        #expect(store.completed.allSatisfy { $0.bytes == scene.bytes && $0.path == "/files" })
        #expect(store.completed.map { $0.headers["X-A"] } == ["1", "1", "1", "1", nil])
        #expect(store.completed.count == 5)
        #expect(store.completed[2].method == .put)
    }

    @Test("With a directory the same command line continues the upload, and adds no second one")
    func directory() async throws {
        let scene = try Scene()
        let store = ResumableUploadStore()
        try await TestOrigin.withOrigin(.plain, handler: .resumableUploads(store)) { origin in
            store.inject(.status(403), into: .patch)
            let words = ["--directory", scene.root + "/queue", "--tus", scene.file, origin.url("/files")]
            await #expect(throws: HTTPError.self) { try await run(words) }
            _ = try await run(words)
            #expect(store.uploads.map(\.bytes) == [scene.bytes])
            store.inject(.status(403), into: .patch)
            await #expect(throws: HTTPError.self) { try await run(words) }
            _ = try await run(["--directory", scene.root + "/queue"])
            #expect(store.completed.count == 2)
        }
    }

    @Test(
        "A wrong number of arguments and options that cannot be stored are usage errors",
        arguments: [
            [], ["f"], ["f", "http://h/", "g"], ["-H", "X-A:", "f", "http://h/"], ["--directory", "d", "f"],
            ["--directory", "d", "-u", "a:b"],
        ])
    func usage(words: [String]) async throws {
        await #expect(throws: UsageError.self) { try await run(words) }
    }

    @Test("Failures have exit codes")
    func exitCodes() {
        let codes: [(HTTPError.Code, MartletCLI.ExitStatus)] = [
            (.unacceptableStatus, .rejectedByStatus), (.uploadRejected, .weirdReply), (.fileFailed, .readFailed),
            (.uploadFileChanged, .readFailed), (.uploadUncertain, .sendFailed),
            (.alreadyInProgress, .alreadyInProgress),
        ]
        for (code, status) in codes {
            let error = HTTPError(code, phase: .sending, message: "m")
            #expect(UploadPlan.failure(in: .failure(error), isStored: true)?.status == status, "\(code)")
        }
        #expect(UploadPlan.failure(in: .failure(CancellationError()), isStored: true)?.status == .interrupted)
        #expect(UploadPlan.failure(in: .success([]), isStored: true) == nil)
    }

    @Test("An upload that may have taken effect is sent again only with --repeat")
    func uncertain() async throws {
        let scene = try Scene()
        let store = ResumableUploadStore()
        try await TestOrigin.withOrigin(.plain, handler: .resumableUploads(store)) { origin in
            store.inject(.loseResponse, into: .post)
            let words = ["--plain", "--directory", scene.root + "/queue", scene.file, origin.url("/files")]
            for _ in 1...2 {
                let error = await #expect(throws: HTTPError.self) { try await run(words) }
                #expect(error?.code == .uploadUncertain)
            }
            #expect(store.completed.count == 1)
            _ = try await run(["--repeat"] + words)
            #expect(store.completed.count == 2)
        }
    }
}
