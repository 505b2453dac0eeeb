import MartletStorage
import MartletTransport
import SystemPackage

/// Writes a body to a file that is published when it is complete.
struct FileDownload: Sendable {
    let path: FilePath
    let overwrites: Bool
    let origin: String

    /// Writes the whole body; what was written is removed when anything fails.
    func write(_ reader: BodyReader) async throws {
        let name = path.string
        let collision: FilePublisher.Collision = overwrites ? .replace : .fail
        let file = try await blocking { () throws(StorageError) in
            try FilePublisher(path: name, collision: collision)
        }
        do {
            while let piece = try await reader.next() {
                try await blocking { () throws(StorageError) in try file.write(piece) }
            }
            try Task.checkCancellation()
            try await blocking { () throws(StorageError) in try file.publish(collision: collision) }
        } catch {
            await BlockingWorkers.shared.run { file.discard() }
            throw error
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
        do throws(StorageError) {
            return try result.get()
        } catch {
            throw HTTPError(
                .fileFailed, phase: .receivingBody, message: error.description, wasSent: true, origin: origin,
                underlying: error)
        }
    }
}
