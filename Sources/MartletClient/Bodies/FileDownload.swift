import MartletConnections
import MartletStorage
import MartletTransport
import SystemPackage

/// Writes a body to a file that is published when it is complete.
struct FileDownload: Sendable {
    let path: FilePath
    let overwrites: Bool
    let origin: String?

    /// Writes the whole body; what was written is removed when anything fails.
    /// - Parameter beginning: What was read of the body before.
    func write(_ reader: BodyReader, after beginning: ArraySlice<UInt8> = []) async throws {
        let file = try await open()
        let expected = reader.expectedByteCount.map { max($0, UInt64(beginning.count)) }
        let writer = WriteBehind(file, expected: expected)
        do {
            try await append(beginning, writer)
            if let exchange = reader.plainExchange {
                try await writeReceived(reader, exchange, writer)
            } else {
                try await writePieces(reader, writer)
            }
            try await finish(writer)
            try Task.checkCancellation()
            try await publish(file)
        } catch {
            await writer.waitForWorker()
            await BlockingWorkers.shared.run { file.discard() }
            throw error
        }
    }

    /// Writes bytes that are there as a whole.
    func write(_ bytes: [UInt8]) async throws {
        let (name, collision) = (path.string, collision)
        try await blocking { () throws(StorageError) in
            let file = try FilePublisher(path: name, collision: collision)
            do throws(StorageError) {
                try file.write(bytes)
                try file.publish(collision: collision)
            } catch {
                file.discard()
                throw error
            }
        }
    }

    private var collision: FilePublisher.Collision { overwrites ? .replace : .fail }

    /// Makes the file, which has no name yet.
    func open() async throws(HTTPError) -> FilePublisher {
        let (name, collision) = (path.string, collision)
        return try await blocking { () throws(StorageError) in
            try FilePublisher(path: name, collision: collision)
        }
    }

    /// Waits until all is written.
    func finish(_ writer: WriteBehind) async throws(HTTPError) {
        try await mapped { () async throws(StorageError) in try await writer.finish() }
    }

    /// Gives the file its name. Where all is written and synced, and only the name cannot be had, the bytes are kept.
    func publish(_ file: FilePublisher) async throws(HTTPError) {
        let collision = collision
        do throws(HTTPError) {
            try await blocking { () throws(StorageError) in try file.publish(collision: collision) }
        } catch {
            guard let fault = error.underlying as? StorageError, ["rename", "link"].contains(fault.operation)
            else { throw error }
            let kept = await BlockingWorkers.shared.run { file.keep() }
            var failure = error
            failure.keptFile = FilePath(kept)
            failure.message += "; what was received is kept in \(kept)"
            throw failure
        }
    }

    /// Receives straight into the blocks that are written.
    private func writeReceived(
        _ reader: BodyReader, _ exchange: Exchange, _ writer: WriteBehind
    ) async throws {
        var hasMore = true
        while hasMore {
            let block = try await mapped { () async throws(StorageError) in try await writer.emptyBlock() }
            // What has come is written while nothing else comes; while a write runs, more of it is gathered.
            hasMore = try await reader.fill(block, from: exchange) { writer.isIdle }
            if block.count > 0 {
                try await mapped { () async throws(StorageError) in try await writer.write(block) }
            }
        }
    }

    private func writePieces(_ reader: BodyReader, _ writer: WriteBehind) async throws {
        while let piece = try await reader.next() {
            try await append(piece[...], writer)
        }
    }

    /// Has bytes written, behind those that were.
    func append(_ bytes: ArraySlice<UInt8>, _ writer: WriteBehind) async throws {
        var rest = bytes
        while !rest.isEmpty {
            let block = try await mapped { () async throws(StorageError) in
                try await writer.emptyBlock()
            }
            rest = rest.dropFirst(block.append(rest))
            try await mapped { () async throws(StorageError) in try await writer.write(block) }
        }
    }

    private func blocking<Value: Sendable>(
        _ body: @escaping @Sendable () throws(StorageError) -> Value
    ) async throws(HTTPError) -> Value {
        let result = await BlockingWorkers.shared.run { () -> Result<Value, StorageError> in
            do throws(StorageError) {
                return .success(try body())
            } catch {
                return .failure(error)
            }
        }
        return try await mapped { () throws(StorageError) in try result.get() }
    }

    private func mapped<Value: Sendable>(
        _ body: () async throws(StorageError) -> Value
    ) async throws(HTTPError) -> Value {
        do throws(StorageError) {
            return try await body()
        } catch {
            throw HTTPError(
                .fileFailed, phase: .receivingBody, message: error.description, wasSent: true, origin: origin,
                underlying: error)
        }
    }
}
