import CMartletLinux
import Glibc
import Synchronization

/// A non-blocking socket registered with an event loop, and the owner of its descriptor. If the socket is closed while
/// another thread is inside a call, the end of that call closes the descriptor. So no call can use a descriptor number
/// that other code has opened again.
package final class Socket: Sendable {
    /// The top bit means closed; the rest counts the calls that are using the descriptor.
    private let usage = Atomic<UInt32>(0)
    private static let closedBit: UInt32 = 1 << 31
    /// The number of bytes at which the kernel wakes a reader; written by the one reader.
    private let receiveLowWater = Atomic<Int>(1)
    private let descriptor: Int32
    /// The loop with which the socket is registered.
    let loop: EventLoop
    package let readiness: Readiness

    /// Takes over an open, non-blocking, close-on-exec descriptor.
    package init(adopting descriptor: Int32, loop: EventLoop) throws(SystemError) {
        do throws(SystemError) { readiness = try loop.register(descriptor).readiness } catch {
            Glibc.close(descriptor)
            throw error
        }
        (self.descriptor, self.loop) = (descriptor, loop)
    }

    deinit { close() }

    /// Calls a closure with the descriptor, which stays open throughout.
    /// - Returns: `nil` if the socket is closed.
    package func withDescriptor<Value>(_ body: (Int32) -> Value) -> Value? {
        let before = usage.wrappingAdd(1, ordering: .acquiring).oldValue
        defer { leave() }
        guard before & Socket.closedBit == 0 else { return nil }
        return body(descriptor)
    }

    private func leave() {
        let after = usage.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue
        if after == Socket.closedBit { release() }
    }

    /// Closes the socket and ends every wait on it. Closing it again has no effect.
    package func close() {
        let before = usage.bitwiseOr(Socket.closedBit, ordering: .acquiringAndReleasing).oldValue
        guard before & Socket.closedBit == 0 else { return }
        readiness.close()
        // Counted as a user while closing, so that exactly one side sees the count return to zero.
        _ = usage.wrappingAdd(1, ordering: .acquiring)
        leave()
    }

    private func release() {
        // Two threads may see the count return to zero if another call ran after the close; one wins this exchange.
        let won = usage.compareExchange(
            expected: Socket.closedBit, desired: Socket.closedBit | (Socket.closedBit >> 1),
            ordering: .acquiringAndReleasing
        ).exchanged
        guard won else { return }
        loop.unregister(descriptor, number: readiness.number)
        Glibc.close(descriptor)
    }

    package var isClosed: Bool { usage.load(ordering: .acquiring) & Socket.closedBit != 0 }

    // MARK: Bytes

    /// Tries to receive.
    /// - Parameter alwaysChecksSocket: Whether to call the kernel even if the latch is not set. The latch then stays
    ///   unchanged: at worst it causes one read that finds nothing.
    package func receive(into buffer: UnsafeMutableRawBufferPointer, alwaysChecksSocket: Bool = false)
        throws(TransportError)
        -> ReadOutcome
    {
        guard alwaysChecksSocket || readiness.beginRead() else { return .wouldBlock }
        let result = withDescriptor { descriptor in
            Socket.retrying { unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0) }
        }
        guard let (count, code) = result else { throw .closed }
        if count == 0 { return .endOfStream(isClean: true) }
        guard count > 0 || code == EAGAIN else { throw .system(SystemError(operation: "recv", code: code)) }
        // A stream socket that returns less than requested is drained: the next edge reports new bytes.
        if !alwaysChecksSocket, count < buffer.count { readiness.readDrained() }
        return count > 0 ? .bytes(count) : .wouldBlock
    }

    /// Tries to send; 0 if it would block. The latch is not cleared, which saves a lock. If it holds an earlier edge
    /// while the socket is full, that costs one needless attempt.
    package func send(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        let result = withDescriptor { descriptor in
            Socket.retrying { unsafe Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL)) }
        }
        guard let (count, code) = result else { throw .closed }
        if count >= 0 { return count }
        if code == EAGAIN { return 0 }
        throw .system(SystemError(operation: "send", code: code))
    }

    /// Makes a system call, and repeats it if a signal interrupted it. Returns the result and the errno.
    package static func retrying(_ call: () -> Int) -> (Int, Int32) {
        while true {
            let result = call()
            if result >= 0 { return (result, 0) }
            let code = errno
            if code != EINTR { return (result, code) }
        }
    }

    /// Checks for an end, an error, or bytes, without consuming bytes.
    package func peek() -> IdleState {
        let isQuiet = withDescriptor { descriptor in
            var byte: UInt8 = 0
            let (count, code) = Socket.retrying { unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK)) }
            return count < 0 && code == EAGAIN
        }
        return isQuiet == true ? .quiet : .unusable
    }

    /// Queries the kernel for bytes, an end or an error. If there are none, yields to other threads.
    func looksReadable() -> Bool {
        // Not `recv` with MSG_PEEK: the kernel reports a reset once, and the reader must receive it.
        let isQuiet = withDescriptor { descriptor in
            var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return unsafe poll(&request, 1, 0) == 0
        }
        if isQuiet == true {
            sched_yield()
            return false
        }
        readiness.noteReadable()
        return true
    }

    package func shutdownWriting() { _ = withDescriptor { shutdown($0, Int32(SHUT_WR)) } }

    package func wait(for direction: Readiness.Direction, until deadline: MonotonicTime) async throws(TransportError) {
        try await readiness.wait(for: direction, until: deadline).check()
    }

    // MARK: Addresses and options

    package var localAddress: SocketAddress? {
        withDescriptor { number in unsafe SocketAddress.filled { unsafe getsockname(number, $0, $1) } } ?? nil
    }

    package var remoteAddress: SocketAddress? {
        withDescriptor { number in unsafe SocketAddress.filled { unsafe getpeername(number, $0, $1) } } ?? nil
    }

    /// Makes ``close()`` send a reset, and discard bytes that were not sent yet.
    package func resetOnClose() { setOption(SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0)) }

    /// Sets the number of bytes at which the kernel reports the socket as readable (`SO_RCVLOWAT`).
    func setReceiveLowWater(_ count: Int) {
        guard receiveLowWater.load(ordering: .relaxed) != count else { return }
        receiveLowWater.store(count, ordering: .relaxed)
        setOption(SOL_SOCKET, SO_RCVLOWAT, Int32(clamping: count))
    }

    /// Sets the class of later packets. An option for another address family fails or has no effect.
    fileprivate func mark(_ serviceClass: ServiceClass) {
        // The two lower bits are for congestion notification, which the system controls.
        setOption(Int32(IPPROTO_IP), IP_TOS, serviceClass.codePoint << 2)
        setOption(Int32(IPPROTO_IPV6), IPV6_TCLASS, serviceClass.codePoint << 2)
    }

    /// Sets an option. A failure is ignored: the socket works without the option, too.
    fileprivate func setOption(_ level: Int32, _ name: Int32, _ value: some BitwiseCopyable) {
        _ = withDescriptor { Descriptor.setOption(of: $0, level, name, value) }
    }
}

/// The descriptor of a socket before it is registered with a loop; closed unless it is released. Epoll reports a socket
/// that is neither connected nor listening as hung up, so a socket is registered last.
package struct Descriptor: ~Copyable {
    package let number: Int32

    /// Opens a non-blocking, close-on-exec stream socket.
    init(_ family: SocketAddress.Family) throws(SystemError) {
        let domain =
            switch family {
            case .ipv4: AF_INET
            case .ipv6: AF_INET6
            case .unix: AF_UNIX
            }
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        try self.init(opening: { socket(domain, type, 0) })
    }

    /// Takes over the descriptor that a call opens.
    /// - Throws: The error of the call; `EMFILE` if too few free descriptors would be left.
    package init(opening open: () -> Int32) throws(SystemError) {
        let opened = open()
        guard opened >= 0 else { throw SystemError(operation: "socket", code: errno) }
        // Descriptors have the lowest number that is free, so a high one shows how few are left.
        guard opened < Descriptor.numberLimit else {
            close(opened)
            throw SystemError(operation: "socket", code: EMFILE)
        }
        number = opened
    }

    /// The upper bound of descriptor numbers for sockets. The last eight descriptors of the process (the last eighth
    /// under a low limit) are reserved for files, name resolution and the runtime. Swift's runtime (libdispatch) opens
    /// a file for each of its threads once a second, and aborts the process if it cannot.
    private static var numberLimit: Int32 {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .max }
        return Int32(clamping: limit.rlim_cur - min(8, limit.rlim_cur / 8))
    }

    deinit { close(number) }

    /// Returns the descriptor, which the caller then has to close.
    package consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }

    /// Registers the socket, which then owns the descriptor. Closes the descriptor on failure.
    consuming func register(with loop: EventLoop) throws(SystemError) -> Socket {
        try Socket(adopting: release(), loop: loop)
    }

    /// Sets an option.
    /// - Returns: Whether the kernel accepted it.
    static func setOption(of descriptor: Int32, _ level: Int32, _ name: Int32, _ value: some BitwiseCopyable) -> Bool {
        unsafe withUnsafeBytes(of: value) {
            unsafe setsockopt(descriptor, level, name, $0.baseAddress, socklen_t($0.count)) == 0
        }
    }

    func setOption(_ level: Int32, _ name: Int32, _ value: Int32) throws(SystemError) {
        guard Descriptor.setOption(of: number, level, name, value) else {
            throw SystemError(operation: "setsockopt", code: errno)
        }
    }

    func bind(to address: SocketAddress) throws(SystemError) {
        guard unsafe address.withKernelForm({ unsafe Glibc.bind(number, $0, $1) }) == 0 else {
            throw SystemError(operation: "bind(\(address))", code: errno)
        }
    }

    func connect(to address: SocketAddress) throws(SystemError) {
        let (_, code) = Socket.retrying { Int(unsafe address.withKernelForm { unsafe Glibc.connect(number, $0, $1) }) }
        guard code == 0 || code == EINPROGRESS || code == EALREADY else {
            throw SystemError(operation: "connect", code: code)
        }
    }
}

/// A listening socket, for test origins.
package final class Listener: Sendable {
    private let socket: Socket
    /// The address to which the socket is bound, with the port that the kernel chose.
    package let address: SocketAddress

    /// Binds and listens.
    /// - Parameters:
    ///   - address: With port 0, the kernel chooses a free one. The file of a unix domain socket must not exist.
    ///   - backlog: The maximum number of connections that wait to be accepted.
    package init(address: SocketAddress, backlog: Int32 = 1024, loop: EventLoop) throws(SystemError) {
        let descriptor = try Descriptor(address.family)
        if address.family != .unix { try descriptor.setOption(SOL_SOCKET, SO_REUSEADDR, 1) }
        try descriptor.bind(to: address)
        guard listen(descriptor.number, backlog) == 0 else { throw SystemError(operation: "listen", code: errno) }
        socket = try descriptor.register(with: loop)
        self.address = socket.localAddress ?? address
    }

    /// Waits for a connection and accepts it.
    /// - Throws: `.closed` after ``close()``; `.system` for an error of the system, such as `EMFILE`.
    package func accept(loop: EventLoop) async throws(TransportError) -> Socket {
        while true {
            // Cleared before the call, so that an edge right after it is not lost.
            _ = socket.readiness.beginRead()
            let result = socket.withDescriptor { descriptor in
                Socket.retrying {
                    Int(martlet_accept4(descriptor, Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)))
                }
            }
            guard let (descriptor, code) = result else { throw .closed }
            if descriptor >= 0 {
                do throws(SystemError) {
                    let accepted = try Socket(adopting: Int32(descriptor), loop: loop)
                    // Fails if the peer has already reset the socket, which does not matter.
                    if address.family != .unix { accepted.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, Int32(1)) }
                    return accepted
                } catch { throw .system(error) }
            }
            if code == ECONNABORTED { continue }
            guard code == EAGAIN else { throw .system(SystemError(operation: "accept", code: code)) }
            socket.readiness.readDrained()
            try await socket.wait(for: .read, until: .distantFuture)
        }
    }

    /// Stops listening; a waiting ``accept(loop:)`` throws.
    package func close() { socket.close() }
}

/// A stream on a socket, plain or over TLS. The extension has the functions that both share.
package protocol SocketStream: ByteStream { var socket: Socket { get } }

extension SocketStream {
    package func waitUntilWritable(until deadline: MonotonicTime) async throws(TransportError) {
        try await socket.wait(for: .write, until: deadline)
    }

    package func wakeReader() { socket.readiness.wakeReader() }
    package func wakeWriter() { socket.readiness.wakeWriter() }
    package func interrupt() { socket.readiness.interrupt() }
    package func looksReadable() -> Bool { socket.looksReadable() }
    package func awaitBytes(_ count: Int) { socket.setReceiveLowWater(count) }
    package func observeIdle(_ observer: any IdleStreamObserver) { socket.readiness.observeIdle(observer) }
    package func mark(_ serviceClass: ServiceClass) { socket.mark(serviceClass) }
}

package final class PlainStream: SocketStream {
    package let socket: Socket
    package let information: ConnectionInformation

    package init(socket: Socket, remoteAddress: SocketAddress?) {
        self.socket = socket
        information = ConnectionInformation(
            remoteAddress: remoteAddress?.description ?? "", localAddress: socket.localAddress?.description ?? "")
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        unsafe try socket.receive(into: buffer)
    }

    package func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        unsafe try socket.send(buffer)
    }

    package func waitUntilReadable(until deadline: MonotonicTime) async throws(TransportError) {
        try await socket.wait(for: .read, until: deadline)
    }

    package func close() { socket.close() }

    package func reset() {
        socket.resetOnClose()
        socket.close()
    }

    package func shutdownWriting() { socket.shutdownWriting() }
    package var mayHaveBytes: Bool { socket.readiness.isWorthReading }
    package var readLatch: Readiness? { socket.readiness }
    package func stopObservingIdle() -> Bool { socket.readiness.stopObservingIdle() }
    package func probe() -> IdleState { socket.peek() }
}
