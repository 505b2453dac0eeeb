import MartletConnections
import MartletStorage
import SystemPackage

/// Has a body written while the rest of it is received.
struct BodyPouring: Sendable {
    private let writer: WriteBehind
    private let origin: String?

    /// - Parameters:
    ///   - sink: Where the body goes.
    ///   - expected: How much of it will come, where that is known.
    ///   - origin: Where it comes from, for errors.
    init(_ sink: any BlockSink, expected: UInt64?, origin: String?) {
        writer = WriteBehind(sink, expected: expected)
        self.origin = origin
    }

    /// Has the rest of a body written, up to its end, or to where the sink wants no more.
    func pour(_ reader: BodyReader) async throws {
        if let exchange = reader.plainExchange {
            try await pourReceived(reader, exchange)
        } else {
            while !writer.isSated, let piece = try await reader.next() { try await append(piece[...]) }
        }
    }

    /// Receives straight into the blocks that are written.
    private func pourReceived(_ reader: BodyReader, _ exchange: Exchange) async throws {
        var hasMore = true
        while hasMore, !writer.isSated {
            let block = try await mapped { () async throws(StorageError) in try await writer.emptyBlock() }
            // What has come is written while nothing else comes; while a write runs, more of it is gathered.
            do {
                hasMore = try await reader.fill(
                    block, from: exchange, whereNothingCame: { writer.isIdle },
                    untilWanted: { await writer.waitForWorker() })
            } catch {
                // What came before the failure is written too: a download goes on behind it.
                if block.count > 0 {
                    try await mapped { () async throws(StorageError) in try await writer.write(block) }
                }
                throw error
            }
            if block.count > 0 {
                try await mapped { () async throws(StorageError) in try await writer.write(block) }
            }
        }
    }

    /// Has bytes written, behind those that were.
    func append(_ bytes: ArraySlice<UInt8>) async throws(HTTPError) {
        var rest = bytes
        while !rest.isEmpty {
            let block = try await mapped { () async throws(StorageError) in try await writer.emptyBlock() }
            rest = rest.dropFirst(block.append(rest))
            try await mapped { () async throws(StorageError) in try await writer.write(block) }
        }
    }

    /// Waits until all is written.
    func finish() async throws(HTTPError) {
        try await mapped { () async throws(StorageError) in try await writer.finish() }
    }

    /// Waits for a write that runs, whatever came of it.
    func waitForWorker() async {
        await writer.waitForWorker()
    }

    private func mapped<Value: Sendable>(
        _ body: () async throws(StorageError) -> Value
    ) async throws(HTTPError) -> Value {
        do throws(StorageError) {
            return try await body()
        } catch {
            throw HTTPError(storage: error, origin: origin)
        }
    }
}

extension HTTPError {
    /// The error of a file into which a body was to go.
    package init(storage error: StorageError, origin: String?) {
        self.init(
            error.isOutOfSpace ? .diskFull : .fileFailed, phase: .receivingBody, message: error.description,
            wasSent: true, origin: origin, underlying: error)
    }
}

extension ResponseBody {
    /// Has the rest of the body written while it is received, up to its end, or to where the sink wants no more: then the
    /// connection is not used again. When it returns or throws, nothing is being written any more.
    /// - Parameter expected: How much of it is wanted at most.
    /// - Throws: An ``HTTPError``, `.fileFailed` and `.diskFull` among them; `CancellationError`.
    package func pour(into sink: any BlockSink, expected: UInt64?) async throws {
        let pouring = BodyPouring(sink, expected: expected, origin: reader.origin)
        do {
            try await pouring.pour(reader)
            try await pouring.finish()
        } catch {
            await pouring.waitForWorker()
            throw error
        }
    }

    /// Ends the body: nothing more is taken of it, and its connection is not used again.
    package func refuse() {
        reader.channel.refuse()
    }
}
