import MartletCache
import MartletTransport

extension CacheFlight {
    /// What came of the request.
    enum Landing: Sendable {
        /// An answer that is not stored: it belongs to whoever takes it first, and the others ask for themselves.
        case exchange
        /// An answer that is stored as its body comes, for all.
        case transfer(StoredVariant)
        /// What was stored is still good.
        case stored(StoredResponse, CachedAnswer)
        /// An error that something stored can stand in for: it belongs to whoever takes it first, and the others have what
        /// is stored.
        case error
        /// There was no answer.
        case failed(any Error)
    }

    /// How the body ended.
    enum End: Sendable {
        /// It came whole, and was stored, if it could be.
        case complete(StoredResponse?)
        /// It did not.
        case failed(any Error)
    }

    /// What a reader gets.
    enum Piece {
        /// Bytes.
        case bytes([UInt8])
        /// What is there has to be read back from the store, from this offset on.
        case stored(ResponseWriter, at: UInt64)
        /// The end.
        case end
        /// The transfer failed.
        case failed(any Error)
        /// Nothing yet.
        case wait(OneShot<Void>)
    }
}
