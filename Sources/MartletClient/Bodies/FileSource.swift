import MartletConnections
import MartletStorage
import MartletTransport

/// A body's source that reads a file, on a worker, a quarter of a MiB at a time.
actor FileSource: BodySource {
    private static let pieceByteCount = 256 * 1024
    private let file: FileReader
    private var offset: UInt64 = 0

    init(_ file: FileReader) {
        self.file = file
    }

    func next() async throws -> [UInt8]? {
        let (file, offset) = (file, offset)
        let result = await BlockingWorkers.shared.run { () -> Result<[UInt8], StorageError> in
            do throws(StorageError) {
                return .success(try file.read(at: offset, limit: FileSource.pieceByteCount))
            } catch {
                return .failure(error)
            }
        }
        let bytes = try result.get()
        self.offset += UInt64(bytes.count)
        return bytes.isEmpty ? nil : bytes
    }
}
