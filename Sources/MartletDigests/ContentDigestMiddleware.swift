public import MartletCore
import Synchronization

/// A middleware that adds `Content-Digest` (RFC 9530 §2) to requests with a body.
///
/// ```swift
/// configuration.middleware = [.contentDigest(.sha256)]
/// ```
///
/// A body that can be sent again is read once before the request is sent: bytes in memory, a file in pieces, or a
/// stream that is opened a second time. A body that can be read only once is sent in chunks, and the field is its
/// trailer.
///
/// A request that has the field is sent unchanged, and so is a request without a body. The digest is that of the body
/// which the middleware receives: a middleware that changes bodies must come earlier in the array.
/// A body with `compressed(_:level:)` is sent uncompressed.
public struct ContentDigestMiddleware: HTTPMiddleware {
    /// The hash functions, without duplicates.
    public let algorithms: [DigestAlgorithm]

    /// Creates a middleware.
    /// - Parameter algorithms: The hash functions; SHA-256 if there are none.
    public init(_ algorithms: [DigestAlgorithm]) {
        let known = DigestAlgorithm.allCases.filter(algorithms.contains)
        self.algorithms = known.isEmpty ? [.sha256] : known
    }

    /// Adds the digest, and sends the request.
    /// - Throws: The errors of `next` and of the body's source; an ``HTTPError`` with the code `.bodyNotReplayable` for
    ///   a body that can be read only once, if the request has a `Content-Length` and so no trailers;
    ///   `CancellationError`.
    public func handle(_ request: HTTPCall.Request, context: CallContext, next: HTTPNext) async throws
        -> HTTPCall.Response
    {
        var request = request
        if request.body.isPresent, request.head.headerFields[.contentDigest] == nil {
            if request.body.replay == .once {
                try await addTrailer(to: &request)
            } else {
                request.head.headerFields[.contentDigest] = try await digest(of: request.body)
            }
        }
        return try await next(request)
    }

    private func digest(of body: HTTPBody) async throws -> String {
        let computation = try makeComputation()
        for try await piece in body.pieces {
            // A piece may be a large body in memory: the task must be cancellable, and other tasks able to run.
            for start in stride(from: 0, to: piece.count, by: 1 << 20) {
                try Task.checkCancellation()
                let part = piece[start..<min(piece.count, start + 1 << 20)]
                computation.add(part.span)
                if piece.count > 1 << 20 { await Task.yield() }
            }
        }
        return try ContentDigestMiddleware.value(of: computation)
    }

    private func addTrailer(to request: inout HTTPCall.Request) async throws {
        guard request.head.headerFields[.contentLength] == nil else {
            throw HTTPError(
                .bodyNotReplayable, phase: .preparing,
                message:
                    "the Content-Digest of a body that can be read only once is sent as a trailer, so the request must have no Content-Length",
                method: request.method, url: request.url)
        }
        let (source, length) = try await request.body.open()
        let hashing = HashingSource(source, length: length, try makeComputation())
        // A body with a trailer is not compressed. Its compression is kept, so that its coding is removed from the
        // caller's `Content-Encoding`.
        request.body.storage = .once(length: nil, SingleUseSource(hashing))
        request.body.trailer = BodyTrailer(name: HTTPField.Name.contentDigest.rawName) { hashing.value }
    }

    private func makeComputation() throws(HTTPError) -> sending DigestComputation {
        do throws(MessageDigestError) { return try DigestComputation(algorithms) } catch { throw HTTPError(error) }
    }

    fileprivate static func value(of computation: DigestComputation) throws(HTTPError) -> String {
        do throws(MessageDigestError) {
            return try computation.finish().map { DigestField.member($0.algorithm, $0.bytes) }.joined(separator: ", ")
        } catch { throw HTTPError(error) }
    }
}

extension HTTPMiddleware where Self == ContentDigestMiddleware {
    /// A middleware that adds `Content-Digest` to requests with a body.
    /// - Parameter algorithms: The hash functions; SHA-256 if there are none.
    public static func contentDigest(_ algorithms: DigestAlgorithm...) -> Self { ContentDigestMiddleware(algorithms) }
}

/// A source that computes the digests of the bytes of another one.
private final class HashingSource: RequestBodySource {
    private struct State {
        let computation: DigestComputation
        var byteCount: UInt64 = 0
        var value: String?
    }

    private let source: any RequestBodySource
    private let length: UInt64?
    /// The lock on the digests, used by the writer of the body.
    private let state: Mutex<State>

    init(_ source: any RequestBodySource, length: UInt64?, _ computation: sending DigestComputation) {
        (self.source, self.length) = (source, length)
        state = Mutex(State(computation: computation))
    }

    /// The value of the field; `nil` before the end of the body.
    var value: String? { state.withLock { $0.value } }

    func next() async throws -> [UInt8]? {
        let piece = try await source.next()
        try state.withLock { state in
            state.byteCount += UInt64(piece?.count ?? 0)
            // The body is sent in chunks, so that nothing else checks its length.
            if let length, state.byteCount > length || piece == nil && state.byteCount < length {
                let error = CompressedBody.LengthError(stated: length, actual: state.byteCount)
                throw HTTPError(.bodyLengthMismatch, phase: .sending, message: error.description, wasSent: true)
            }
            if let piece {
                state.computation.add(piece.span)
            } else if state.value == nil {
                state.value = try ContentDigestMiddleware.value(of: state.computation)
            }
        }
        return piece
    }
}

extension HTTPError {
    fileprivate init(_ error: MessageDigestError) {
        self.init(.systemFailed, phase: .preparing, message: error.description, underlying: error)
    }
}
