import Foundation
import Martlet
import MartletContent
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

/// Sessions, digests and ways of reading, shared by the suites of digests.
enum DigestScene {
    static let text = "hello, world"
    static var bytes: [UInt8] { Array(text.utf8) }

    /// Creates a session whose timeouts end only hangs.
    static func session(
        _ policy: DigestVerificationPolicy = .whenPresent, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> HTTPSession {
        var configuration = SessionConfiguration.ephemeral.patient()
        configuration.digestVerification = policy
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }

    /// Returns the value of a digest field.
    static func field(_ content: some Collection<UInt8>, _ algorithms: DigestAlgorithm...) throws -> String {
        try algorithms.map {
            DigestField.member($0, try MessageDigest.digest($0 == .sha512 ? .sha512 : .sha256, of: content))
        }.joined(separator: ", ")
    }

    /// The digest of other bytes than ``bytes``.
    static func wrong(_ algorithm: DigestAlgorithm = .sha256) throws -> String { try field("other".utf8, algorithm) }

    /// Runs a closure with the path of a file in an empty directory, which is removed afterwards.
    static func withFile<Value>(_ body: (FilePath) async throws -> Value) async throws -> Value {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        return try await body(FilePath(directory.appendingPathComponent("file").path))
    }

    /// Runs a closure that must fail because of a digest.
    @discardableResult static func expectMismatch(
        sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> some Any
    ) async -> HTTPError? {
        do {
            let value = try await body()
            Issue.record("\(value) instead of an error", sourceLocation: sourceLocation)
        } catch let error as HTTPError {
            #expect(error.code == .checksumMismatch, "\(error)", sourceLocation: sourceLocation)
            #expect(error.underlying is DigestError, "\(error)", sourceLocation: sourceLocation)
            return error
        } catch { Issue.record("\(error)", sourceLocation: sourceLocation) }
        return nil
    }
}

/// A way of reading the body of a response.
enum Reading: CaseIterable, Sendable {
    case collected, streamed, opened, saved, task

    /// Returns the body.
    func body(of url: String, with session: HTTPSession, options: RequestOptions = RequestOptions()) async throws
        -> [UInt8]
    {
        switch self {
        case .collected: return try await session.get(url, options: options).body
        case .streamed: return try await session.stream(url, options: options) { _, body in try await body.collect() }
        case .opened: return try await session.open(url, options: options).body.collect()
        case .saved:
            return try await DigestScene.withFile { path in
                do { try await session.save(url, to: path, options: options) } catch {
                    #expect(!FileManager.default.fileExists(atPath: path.string))
                    throw error
                }
                return Array(try #require(FileManager.default.contents(atPath: path.string)))
            }
        case .task: return try await session.task(for: url, options: options).value.body
        }
    }
}
