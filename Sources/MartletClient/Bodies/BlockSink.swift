import MartletStorage
package import MartletTransport

/// Where the blocks of a body go. Its calls block: they are made on a worker, one at a time.
package protocol BlockSink: Sendable {
    /// Takes the next bytes of a body, all of them unless it throws or wants no more.
    /// - Returns: Whether more of the body is wanted.
    func write(_ bytes: RawSpan) throws(StorageError) -> Bool
    /// The workers on which it is called: those that all sessions share, unless it waits for the disk.
    var workers: BlockingWorkers { get }
}

extension BlockSink {
    package var workers: BlockingWorkers { .shared }
}

extension FilePublisher: BlockSink {
    /// Appends bytes; more are always wanted.
    package func write(_ bytes: RawSpan) throws(StorageError) -> Bool {
        unsafe try bytes.withUnsafeBytes { bytes throws(StorageError) in unsafe try write(bytes) }
        return true
    }
}
