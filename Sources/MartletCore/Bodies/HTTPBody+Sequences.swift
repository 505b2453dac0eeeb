// Bodies made of byte sequences, which are read once, and forms made of pairs.

extension HTTPBody {
    /// The maximum number of bytes collected for one piece.
    fileprivate static let pieceByteCount = 16 * 1024

    /// Creates a body of bytes that can be read only once, such as those of a generator. They are read while the body
    /// is sent, 16 KiB at a time, so an endless sequence needs little memory. A redirect or challenge that needs the
    /// bytes again is returned as the response, and nothing is retried. A middleware or another request that sends the
    /// body again fails with ``HTTPError/Code/bodyNotReplayable``.
    /// - Parameters:
    ///   - bytes: The bytes. The iterator runs on the threads of Swift concurrency, so it must not block for long.
    ///   - length: The length in bytes, as with ``stream(length:contentType:_:)``; `nil` sends the body in chunks.
    public static func once(
        _ bytes: sending some Sequence<UInt8>, length: UInt64? = nil, contentType: String? = "application/octet-stream"
    ) -> HTTPBody { HTTPBody(.once(length: length, SingleUseSource(ByteSource(bytes))), contentType: contentType) }

    /// Creates a body of an asynchronous byte sequence; otherwise like the function for synchronous sequences.
    ///
    /// Bytes are sent in pieces of 16 KiB, and the rest at the end. To send bytes without delay, use a sequence of
    /// pieces.
    public static func once<Bytes: AsyncSequence & Sendable>(
        _ bytes: Bytes, length: UInt64? = nil, contentType: String? = "application/octet-stream"
    ) -> HTTPBody where Bytes.Element == UInt8, Bytes.AsyncIterator: SendableMetatype {
        .once(CollectedBytes(bytes: bytes), length: length, contentType: contentType)
    }

    /// Creates a form (`application/x-www-form-urlencoded`) of names and values, in the given order. A name may occur
    /// more than once: `.form(["tag": "swift", "tag": "linux"])`.
    public static func form(_ items: KeyValuePairs<String, String>) -> HTTPBody {
        form(items.map { QueryItem(name: $0.key, value: $0.value) })
    }

    /// Creates a form of names and values, in the given order; items that are `nil` are omitted.
    @_disfavoredOverload public static func form(_ items: KeyValuePairs<String, String?>) -> HTTPBody {
        form(items.compactMap { item in item.value.map { QueryItem(name: item.key, value: $0) } })
    }

    /// Creates a form of pairs of names and values, in the given order: `.form([("tag", "swift"), ("tag", "linux")])`.
    @_disfavoredOverload public static func form(_ items: some Sequence<(String, String)>) -> HTTPBody {
        form(items.map { QueryItem(name: $0.0, value: $0.1) })
    }

    /// Creates a form of the entries of a dictionary, sorted by name.
    @_disfavoredOverload public static func form(_ items: [String: String]) -> HTTPBody {
        form(items.sorted { $0.key < $1.key }.map { QueryItem(name: $0.key, value: $0.value) })
    }
}

private actor ByteSource<Bytes: Sequence<UInt8>>: RequestBodySource {
    private var iterator: Bytes.Iterator?

    init(_ bytes: sending Bytes) { iterator = bytes.makeIterator() }

    func next() -> [UInt8]? {
        var piece: [UInt8] = []
        while piece.count < HTTPBody.pieceByteCount, let byte = iterator?.next() { piece.append(byte) }
        if piece.isEmpty { iterator = nil }
        return piece.isEmpty ? nil : piece
    }
}

/// The pieces of an asynchronous sequence of bytes.
private struct CollectedBytes<Bytes: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Bytes.Element == UInt8, Bytes.AsyncIterator: SendableMetatype {
    typealias Element = [UInt8]

    let bytes: Bytes

    struct Iterator: AsyncIteratorProtocol {
        var bytes: Bytes.AsyncIterator
        var isOver = false

        mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

        mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            var piece: [UInt8] = []
            while !isOver, piece.count < HTTPBody.pieceByteCount {
                guard let byte = try await bytes.next(isolation: actor) else {
                    isOver = true
                    break
                }
                piece.append(byte)
            }
            return piece.isEmpty ? nil : piece
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(bytes: bytes.makeAsyncIterator()) }
}
