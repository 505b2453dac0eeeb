import MartletConnections
import MartletStorage
import MartletTransport

/// A body's source that reads a file, on a worker, a quarter of a MiB at a time; the next piece is read while one is sent.
actor FileSource: BodySource {
    private static let pieceByteCount = 256 * 1024
    private let file: FileReader
    private var offset: UInt64 = 0
    /// The piece behind the one that was handed out, on its way.
    private var ahead: OneShot<Result<[UInt8], StorageError>>?

    init(_ file: FileReader) {
        self.file = file
    }

    func next() async throws -> [UInt8]? {
        let piece = ahead.take() ?? read()
        guard case .value(let result) = await piece.wait(until: .distantFuture, on: .sharedOrStalled) else {
            throw CancellationError()
        }
        let bytes = try result.get()
        offset += UInt64(bytes.count)
        if bytes.isEmpty { return nil }
        // Where a file is at its end, asking once more costs little, and tells one that has grown.
        ahead = read()
        return bytes
    }

    /// Begins to read the piece at the present offset.
    private func read() -> OneShot<Result<[UInt8], StorageError>> {
        let piece = OneShot<Result<[UInt8], StorageError>>()
        let (file, offset) = (file, offset)
        let rest = file.byteCount > offset ? file.byteCount - offset : 1
        let limit = Int(min(rest, UInt64(FileSource.pieceByteCount)))
        BlockingWorkers.shared.submit {
            do throws(StorageError) {
                piece.fulfil(.success(try file.read(at: offset, limit: limit)))
            } catch {
                piece.fulfil(.failure(error))
            }
        }
        return piece
    }
}
