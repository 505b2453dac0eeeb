import MartletContent
import MartletCore

/// The body of a response, which is copied while the caller reads it.
struct CopiedResponseBody: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    let body: ResponseBody
    /// The maximum number of bytes, and the error above it.
    let limit: (byteCount: Int, error: CassetteError)
    /// The function that receives the whole body, before the caller sees its end.
    let finish: @Sendable ([UInt8]) async throws -> Void

    struct Iterator: AsyncIteratorProtocol {
        let sequence: CopiedResponseBody
        var pieces: ResponseBody.Iterator
        var copy: [UInt8] = []

        mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

        mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            guard let piece = try await pieces.next(isolation: actor) else {
                try await sequence.finish(copy)
                return nil
            }
            guard piece.count <= sequence.limit.byteCount - copy.count else { throw sequence.limit.error }
            copy += piece
            return piece
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(sequence: self, pieces: body.makeAsyncIterator()) }
}

/// A source that copies the bytes of another one while they are sent.
final class CopyingSource: RequestBodySource {
    private let source: any RequestBodySource
    private let limit: Int
    /// The bytes that were sent so far; `nil` above the limit.
    let copy = AwaitableState<[UInt8]?>([])

    init(_ source: any RequestBodySource, limit: Int) { (self.source, self.limit) = (source, limit) }

    func next() async throws -> [UInt8]? {
        let piece = try await source.next()
        if let piece { add(piece) }
        return piece
    }

    private func add(_ piece: [UInt8]) {
        copy.update { copy in
            if piece.count > limit - (copy?.count ?? limit) { copy = nil } else { copy?.append(contentsOf: piece) }
        }
    }
}
