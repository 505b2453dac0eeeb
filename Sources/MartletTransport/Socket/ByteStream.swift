import Glibc

package enum ReadOutcome: Equatable, Sendable {
    /// The number of bytes that were put into the buffer; never zero.
    case bytes(Int)
    /// No bytes yet. The caller waits until the stream is readable, and tries again.
    case wouldBlock
    /// The peer has ended the stream. Over TLS the end is clean only after a `close_notify`; without one, an attacker
    /// may have cut the stream (RFC 8446 §6.1).
    case endOfStream(isClean: Bool)
}

package enum IdleState: Sendable {
    /// The stream is open, and nothing has arrived. It can be used for another request.
    case quiet
    /// The peer has ended or reset the stream, or sent unsolicited bytes. The stream must not be used again.
    case unusable
}

/// An object that is notified when something happens on an idle stream.
package protocol IdleStreamObserver: AnyObject, Sendable {
    /// Called on the loop's thread, or by `observeIdle`, when bytes have arrived or the peer has closed its side.
    func idleStreamBecameReadable()
}

/// A connected stream of bytes: plain, over TLS, or in memory. Reading and writing make one attempt, on the caller's
/// thread, and report if they would block; waiting is a separate call. One task reads and one may write at the same
/// time. Any thread may call `interrupt` and `close` at any time.
package protocol ByteStream: AnyObject, Sendable {
    /// Tries to read into a buffer that is not empty.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome

    /// Tries to write from a buffer that is not empty.
    /// - Returns: The number of bytes that were written; 0 if it would block.
    func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int

    /// Waits until a read is worth trying. Returns immediately if something arrived since the last attempt. Cancelling
    /// the task has no effect by itself: the code that cancels it calls ``interrupt()``.
    /// - Throws: `.timedOut` at the deadline, `.interrupted`, `.closed`.
    func waitUntilReadable(until deadline: MonotonicTime) async throws(TransportError)

    /// Waits until a write is worth trying, like ``waitUntilReadable(until:)``.
    func waitUntilWritable(until deadline: MonotonicTime) async throws(TransportError)

    /// Makes a waiting reader return, so that it can wait again with another deadline.
    func wakeReader()

    /// Makes a waiting writer return, so that it can check whether it must stop.
    func wakeWriter()

    /// Ends every wait, now and later. The descriptor stays open until ``close()``.
    func interrupt()

    /// Closes the stream; further calls throw `.closed`. Closing it again has no effect. A TLS stream sends its
    /// `close_notify` if that is possible without waiting.
    func close()

    /// Closes the stream so that the peer sees a reset rather than an end.
    func reset()

    /// Ends the writing direction: the peer reads the end of the stream, and may still send.
    func shutdownWriting()

    /// Whether ``shutdownWriting()`` could not send the end yet, and has to be called again once the stream is
    /// writable. `false` by default.
    var hasPendingEnd: Bool { get }

    /// Checks whether an idle stream can be used for another request, without waiting or consuming bytes of a response.
    func probe() -> IdleState

    /// Whether a read may find bytes, an end or an error; `false` only if it certainly would not. `true` by default.
    var mayHaveBytes: Bool { get }

    /// The readiness that ``waitUntilReadable(until:)`` waits for; `nil` (the default) if there is not exactly one.
    var readLatch: Readiness? { get }

    /// Queries the kernel for readable bytes, for a reader that polls instead of waiting. Yields to other threads if
    /// there are no bytes. The default is `false`, so that the reader waits.
    func looksReadable() -> Bool

    /// Ends the observation that ``observeIdle(_:)`` started.
    /// - Returns: Whether there may be something to read: `false` if nothing was reported since a read took all bytes.
    ///   A change of the last microseconds may not be reported yet.
    @discardableResult func stopObservingIdle() -> Bool

    /// Notifies an observer whenever something happens on the idle stream, until ``stopObservingIdle()``.
    func observeIdle(_ observer: any IdleStreamObserver)

    /// Makes a wait for reading end only when this many bytes, the end, or an error has arrived; initially 1. If the
    /// number is lowered to that of the available bytes, a wait ends immediately. Reads take all available bytes. The
    /// default implementation does nothing: every byte ends a wait.
    func awaitBytes(_ count: Int)

    /// Sets the traffic class of later packets. The default implementation does nothing, for streams without packets.
    func mark(_ serviceClass: ServiceClass)

    var information: ConnectionInformation { get }
}

extension ByteStream {
    package var hasPendingEnd: Bool { false }
    package var mayHaveBytes: Bool { true }
    package var readLatch: Readiness? { nil }
    package func awaitBytes(_ count: Int) {}
    package func mark(_ serviceClass: ServiceClass) {}
    package func looksReadable() -> Bool { false }

    /// Notifies a closure; otherwise like ``observeIdle(_:)``.
    package func observeIdle(calling closure: @escaping @Sendable () -> Void) { observeIdle(IdleClosure(closure)) }

    /// Tries to write an array from an offset on.
    /// - Returns: The number of bytes that were written; 0 if it would block.
    package func write(_ bytes: [UInt8], from offset: Int) throws(TransportError) -> Int {
        try unsafe bytes.span.withUnsafeBytes { all throws(TransportError) in
            unsafe try write(UnsafeRawBufferPointer(rebasing: all[offset...]))
        }
    }

    /// Waits for bytes and reads them, in handshakes that open a tunnel: bytes after the last reply must not be read.
    /// - Parameter count: The maximum number of bytes, at least 1.
    /// - Returns: The bytes, at least one; `nil` at the end of the stream.
    /// - Throws: `.timedOut`, `.interrupted`, and the errors of reading.
    package func receive(atMost count: Int, until deadline: MonotonicTime) async throws(TransportError) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: max(1, count))
        while true {
            // Checked here too: if the peer keeps sending small pieces, the wait never reaches the deadline.
            if MonotonicTime.now() >= deadline { throw .timedOut }
            var span = buffer.mutableSpan
            let outcome = try unsafe span.withUnsafeMutableBytes { raw throws(TransportError) in
                unsafe try read(into: raw)
            }
            switch outcome {
            case .bytes(let received): return Array(buffer.prefix(received))
            case .wouldBlock: try await waitUntilReadable(until: deadline)
            case .endOfStream: return nil
            }
        }
    }

    /// Writes all of the bytes.
    /// - Throws: `.timedOut`, `.interrupted`, and the errors of writing.
    package func send(_ bytes: [UInt8], until deadline: MonotonicTime) async throws(TransportError) {
        var offset = 0
        while offset < bytes.count {
            let count = try write(bytes, from: offset)
            offset += count
            if count == 0 { try await waitUntilWritable(until: deadline) }
        }
    }
}

private final class IdleClosure: IdleStreamObserver {
    private let closure: @Sendable () -> Void

    init(_ closure: @escaping @Sendable () -> Void) { self.closure = closure }

    func idleStreamBecameReadable() { closure() }
}

package enum TransportError: Error, Sendable {
    case resolution(ResolutionError)
    /// All attempts to connect failed. Contains their errors, in chronological order.
    case connect([ConnectError])
    /// Reading or writing failed, for example after a reset by the peer.
    case system(SystemError)
    /// This side or the peer rejected the TLS handshake or a record.
    case tls(TLSError)
    case timedOut
    /// The stream was interrupted, for example by cancellation.
    case interrupted
    /// The stream was closed on this side.
    case closed
    /// The stream's local address is no longer an address of this machine.
    case addressLost
}

/// One attempt to connect that failed.
public struct ConnectError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The address, such as `127.0.0.1:8080`, `[::1]:443` or a socket's path.
    public var address: String
    /// The error of the system.
    public var error: SystemError

    /// Creates an error.
    public init(address: String, error: SystemError) { (self.address, self.error) = (address, error) }

    /// The address and the reason.
    public var description: String { "\(address): \(error)" }
}

/// A name that did not resolve.
public struct ResolutionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The host name that did not resolve.
    public var host: String
    /// The resolver's error code: an `EAI_…` constant of `getaddrinfo`, or 0 from another resolver.
    public var code: Int32
    /// The message of the resolver.
    public var message: String

    /// Creates an error.
    public init(host: String, code: Int32 = 0, message: String) {
        (self.host, self.code, self.message) = (host, code, message)
    }

    /// The name and the reason.
    public var description: String { "could not resolve \(host): \(message)" }
}

/// A system call that failed, and its errno.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call's name, such as `connect`.
    public var operation: String
    /// The errno, such as 111 (`ECONNREFUSED`).
    public var code: Int32

    /// Creates an error.
    public init(operation: String, code: Int32) { (self.operation, self.code) = (operation, code) }

    package var isReset: Bool { code == ECONNRESET }
    package var isConnectionRefused: Bool { code == ECONNREFUSED }
    /// Whether too many files are open, or no memory is left for another socket: the peer did not cause the error.
    package var isLocalShortage: Bool { [EMFILE, ENFILE, ENOMEM, ENOBUFS].contains(code) }

    /// The call and the system's text for the number: `connect: Connection refused (errno 111)`.
    public var description: String { "\(operation): \(SystemError.text(of: code)) (errno \(code))" }

    /// The C library's text for an errno.
    package static func text(of code: Int32) -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress, unsafe strerror_r(code, base, buffer.count) == 0 else {
                return "unknown error"
            }
            return unsafe String(cString: base)
        }
    }
}

/// Properties of an established connection.
public struct ConnectionInformation: Hashable, Sendable {
    private struct Parts: Hashable {
        let remoteAddress: String
        let localAddress: String
        let tls: TLSInformation?
    }

    /// An object that is created once per connection. All exchanges on the connection share it.
    private final class Storage: Sendable {
        let parts: Parts

        init(_ parts: Parts) { self.parts = parts }
    }

    private let storage: Storage

    /// The peer's address, such as `127.0.0.1:443`.
    public var remoteAddress: String { storage.parts.remoteAddress }

    /// This side's address.
    public var localAddress: String { storage.parts.localAddress }

    /// The result of the TLS handshake; `nil` on a plain connection.
    public var tls: TLSInformation? { storage.parts.tls }

    /// Creates the description of a connection.
    public init(remoteAddress: String, localAddress: String, tls: TLSInformation? = nil) {
        storage = Storage(Parts(remoteAddress: remoteAddress, localAddress: localAddress, tls: tls))
    }

    /// Compares all properties.
    public static func == (left: ConnectionInformation, right: ConnectionInformation) -> Bool {
        left.storage === right.storage || left.storage.parts == right.storage.parts
    }

    /// Hashes all properties.
    public func hash(into hasher: inout Hasher) { hasher.combine(storage.parts) }
}

/// The result of a TLS handshake.
public struct TLSInformation: Hashable, Sendable {
    /// The version of TLS: `TLSv1.2` or `TLSv1.3`.
    public var version: String
    /// The cipher suite's name, such as `TLS_AES_256_GCM_SHA384`.
    public var cipher: String
    /// The protocol that the server chose by ALPN (RFC 7301); `nil` if it chose none.
    public var applicationProtocol: String?
    /// Whether the handshake resumed an earlier session.
    public var isResumed: Bool
    /// The peer's leaf certificate in DER; empty without one.
    public var peerCertificate: [UInt8]

    /// The error of the peer's chain that a custom trust policy accepted; `nil` if there was none.
    package internal(set) var acceptedError: TLSError.Kind?

    /// Creates the description of a handshake's result.
    public init(
        version: String, cipher: String, applicationProtocol: String? = nil, isResumed: Bool = false,
        peerCertificate: [UInt8] = []
    ) {
        (self.version, self.cipher, self.applicationProtocol) = (version, cipher, applicationProtocol)
        (self.isResumed, self.peerCertificate) = (isResumed, peerCertificate)
    }
}
