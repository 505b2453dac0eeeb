/// What one attempt to read gave.
package enum ReadOutcome: Equatable, Sendable {
    /// So many bytes were put into the buffer; never zero.
    case bytes(Int)
    /// Nothing yet: wait until readable and try again.
    case wouldBlock
    /// The peer has ended the stream. Over TLS it is clean only after a `close_notify`; a TLS stream that ends without
    /// one may have been cut by anybody (RFC 8446 §6.1).
    case endOfStream(isClean: Bool)
}

/// What a look at an idle stream showed.
package enum IdleState: Sendable {
    /// Open, and nothing has arrived: fit for another request.
    case quiet
    /// The peer has ended or reset the stream, or sent bytes that nobody asked for: it must not be used again.
    case unusable
}

/// A connected stream of bytes: plain, over TLS, or in memory.
///
/// Reading and writing try at once, on the caller's thread, and tell when they would block; waiting is a call of its own.
/// One task reads and one may write at the same time. `interrupt` and `close` may come from any thread at any moment.
package protocol ByteStream: AnyObject, Sendable {
    /// Tries to read into a buffer that is not empty.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome

    /// Tries to write from a buffer that is not empty.
    /// - Returns: How many bytes were taken; 0 when it would block.
    func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int

    /// Waits until a read is worth trying.
    ///
    /// Returns at once when something arrived since the last try. Cancelling the task has no effect by itself: whoever
    /// cancels calls ``interrupt()``.
    /// - Throws: `.timedOut` at the deadline, `.interrupted`, `.closed`.
    func waitUntilReadable(until deadline: MonotonicTime) async throws(TransportError)

    /// Waits until a write is worth trying; else as ``waitUntilReadable(until:)``.
    func waitUntilWritable(until deadline: MonotonicTime) async throws(TransportError)

    /// Makes a waiting reader return, so that it can wait again with another deadline.
    func wakeReader()

    /// Makes a waiting writer return, so that it can see that it is to stop.
    func wakeWriter()

    /// Ends every wait, now and later. The descriptor stays open until ``close()``.
    func interrupt()

    /// Closes the stream; further calls throw `.closed`. Closing twice is closing once.
    ///
    /// A TLS stream sends its `close_notify` if that can be done without waiting.
    func close()

    /// Closes the stream so that the peer sees a reset rather than an end.
    func reset()

    /// Ends the writing direction: the peer reads the end of the stream, and may go on sending.
    func shutdownWriting()

    /// Looks whether an idle stream is fit for another request, without waiting and without taking bytes of a response.
    func probe() -> IdleState

    /// Whether a read may find something; `false` only where it is known that it would not.
    var mayHaveBytes: Bool { get }

    /// What ``waitUntilReadable(until:)`` waits for, where that is one socket's readiness and nothing else.
    var readLatch: Readiness? { get }

    /// Asks the kernel whether a read would find something, for a reader that watches instead of waiting; lets others run
    /// where it would not.
    func looksReadable() -> Bool

    /// Ends the watch of ``watchWhileIdle(_:)``.
    /// - Returns: Whether something has happened on the stream since it was last read, or that read left bytes behind; it
    ///   may be late, and where the stream cannot tell, it is `true`.
    @discardableResult func endIdleWatch() -> Bool

    /// Has a watcher told whenever something happens on the stream while nobody uses it, until ``endIdleWatch()``.
    func watchWhileIdle(_ watcher: any IdleWatcher)

    /// Has a wait to read end only when so many bytes are there, or the end, or an error; 1 is what it is at first.
    ///
    /// Reads themselves take what there is. Where fewer bytes are there when the number falls, a wait ends at once.
    func awaitBytes(_ count: Int)

    /// What is known of the connection.
    var information: ConnectionInformation { get }
}

extension ByteStream {
    /// Streams that cannot tell say that there may be something.
    package var mayHaveBytes: Bool { true }

    /// Streams that are more than a socket do their own waiting.
    package var readLatch: Readiness? { nil }

    /// Streams without a kernel below them wake their reader for every byte.
    package func awaitBytes(_ count: Int) {}

    /// Streams that cannot be asked are waited for.
    package func looksReadable() -> Bool { false }

    /// Has a closure called; else as ``watchWhileIdle(_:)``.
    package func watchWhileIdle(calling closure: @escaping @Sendable () -> Void) {
        watchWhileIdle(IdleClosure(closure))
    }

    /// Tries to write an array from an offset on.
    /// - Returns: How many bytes were taken; 0 when it would block.
    package func write(_ bytes: [UInt8], from offset: Int) throws(TransportError) -> Int {
        try unsafe bytes.span.withUnsafeBytes { all throws(TransportError) in
            unsafe try write(UnsafeRawBufferPointer(rebasing: all[offset...]))
        }
    }
}

/// Why bytes could not be moved.
package enum TransportError: Error, Sendable {
    /// The name did not resolve.
    case resolution(ResolutionError)
    /// No address could be connected to: every attempt, in the order they ended.
    case connect([ConnectFailure])
    /// Reading or writing failed, as by a reset of the peer's.
    case system(SystemError)
    /// The TLS handshake or a record was refused, by us or by the peer.
    case tls(TLSError)
    /// The deadline passed.
    case timedOut
    /// The stream was interrupted, as cancelling does.
    case interrupted
    /// The stream was closed on this side.
    case closed
    /// The stream's address on this side is no address of this machine any more.
    case addressLost
}

/// One attempt to connect that failed.
public struct ConnectFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The address tried, such as `127.0.0.1:8080`, `[::1]:443` or a socket's path.
    public var address: String

    /// What the system said.
    public var error: SystemError

    /// A failed attempt.
    public init(address: String, error: SystemError) {
        self.address = address
        self.error = error
    }

    /// The address and the reason.
    public var description: String { "\(address): \(error)" }
}

/// A name that did not resolve.
public struct ResolutionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name asked for.
    public var host: String

    /// The resolver's number: an `EAI_…` constant of `getaddrinfo`, or 0 where another resolver answered.
    public var code: Int32

    /// What the resolver said.
    public var message: String

    /// A failed look-up.
    public init(host: String, code: Int32 = 0, message: String) {
        self.host = host
        self.code = code
        self.message = message
    }

    /// The name and the reason.
    public var description: String { "could not resolve \(host): \(message)" }
}
