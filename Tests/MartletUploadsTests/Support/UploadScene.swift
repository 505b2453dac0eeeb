import Foundation
import MartletCore
import MartletTesting
import MartletTestSupport
import MartletUploads
import Synchronization

/// A file, a directory of uploads, and an origin that receives them.
final class UploadScene: Sendable {
    let store: ResumableUploadStore
    let origin: TestOrigin
    let session = HTTPSession()
    let root: String
    let bytes: [UInt8]
    /// Retries without a noticeable delay.
    static let retry = UploadRetry(initialDelay: .milliseconds(1), maximumDelay: .milliseconds(2))

    private init(_ store: ResumableUploadStore, _ origin: TestOrigin, byteCount: Int) throws {
        (self.store, self.origin) = (store, origin)
        root = FileManager.default.temporaryDirectory.path + "/martlet-uploads-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        // No two pieces are equal, so that bytes that are lost, repeated or moved are detected.
        bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ ($0 >> 8) &* 17 ^ ($0 >> 16)) }
        try Data(bytes).write(to: URL(fileURLWithPath: file))
    }

    deinit { try? FileManager.default.removeItem(atPath: root) }

    var file: String { root + "/file.bin" }
    var directory: String { root + "/uploads" }
    var url: String { origin.url("/files") }

    static func with(
        _ byteCount: Int, store: ResumableUploadStore = ResumableUploadStore(),
        _ body: (UploadScene) async throws -> Void
    ) async throws {
        try await TestOrigin.withOrigin(.plain, handler: .resumableUploads(store)) { origin in
            try await body(try UploadScene(store, origin, byteCount: byteCount))
        }
    }

    func options(_ given: UploadProtocol, chunk: Int? = nil, method: HTTPRequest.Method = .post) -> UploadOptions {
        UploadOptions(
            method: method, protocol: given, chunkSize: chunk.map { ByteCount($0) }, retry: UploadScene.retry)
    }

    @discardableResult func upload(_ given: UploadProtocol, chunk: Int? = nil, method: HTTPRequest.Method = .post)
        async throws -> UploadResult
    { try await session.uploadResumably(file, to: url, options: options(given, chunk: chunk, method: method)) }

    func manager(
        limits: UploadLimits = UploadLimits(),
        prepare: (@Sendable (inout HTTPHeaders, HTTPURL) async throws -> Void)? = nil
    ) async throws -> UploadManager {
        try await UploadManager(session: session, directory: directory, limits: limits, prepare: prepare)
    }

    /// All bytes of the files in the directory of uploads, as text.
    func stored() throws -> String {
        try FileManager.default.contentsOfDirectory(atPath: directory).map { name in
            String(decoding: try Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(name)")), as: UTF8.self)
        }.joined()
    }
}

/// A value that several tasks change.
final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }

    var value: Value { state.withLock { $0 } }

    func change(_ body: (inout Value) -> Void) { state.withLock { body(&$0) } }
}
