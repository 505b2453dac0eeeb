import CLinux
import Glibc
import Synchronization

/// A non-blocking socket registered with an event loop; owner of its descriptor.
///
/// The descriptor's number is given back to the system only when no call is using it: closing while another thread is
/// inside a call marks the socket, and that call's end closes it. So no read or write can ever meet a descriptor that
/// was closed and opened again by someone else.
package final class Socket: Sendable {
    /// The top bit says closed; the rest counts the calls that are using the descriptor.
    private let usage = Atomic<UInt32>(0)
    private static let closedBit: UInt32 = 1 << 31

    /// The kernel's mark for waking a reader, in bytes; written by the one reader.
    private let receiveLowWater = Atomic<Int>(1)
    private let descriptor: Int32
    private let number: UInt32
    /// The loop it is registered with.
    let loop: EventLoop
    /// The readiness of the two directions.
    package let readiness: Readiness

    /// Takes over an open, non-blocking, close-on-exec descriptor.
    package init(adopting descriptor: Int32, loop: EventLoop) throws(SystemError) {
        do throws(SystemError) {
            let registered = try loop.register(descriptor)
            readiness = registered.readiness
            number = registered.number
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        self.loop = loop
    }

    deinit { close() }

    /// Calls a closure with the descriptor, which stays open throughout.
    /// - Returns: `nil` when the socket is closed.
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

    /// Closes the socket and ends every wait on it. Closing twice is closing once.
    package func close() {
        let before = usage.bitwiseOr(Socket.closedBit, ordering: .acquiringAndReleasing).oldValue
        guard before & Socket.closedBit == 0 else { return }
        readiness.close()
        // Counted as a user while closing, so that exactly one side sees the count go to nothing.
        _ = usage.wrappingAdd(1, ordering: .acquiring)
        leave()
    }

    private func release() {
        // Two may see the count fall to zero, when one more call came and went after the close; one wins this exchange.
        let won = usage.compareExchange(
            expected: Socket.closedBit, desired: Socket.closedBit | (Socket.closedBit >> 1),
            ordering: .acquiringAndReleasing
        ).exchanged
        guard won else { return }
        loop.unregister(descriptor, number: number)
        Glibc.close(descriptor)
    }

    /// Whether ``close()`` has been called.
    package var isClosed: Bool { usage.load(ordering: .acquiring) & Socket.closedBit != 0 }

    // MARK: Bytes

    /// Tries to receive.
    package func receive(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        guard readiness.beginRead() else { return .wouldBlock }
        let result = withDescriptor { descriptor in
            Socket.retrying { unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0) }
        }
        guard let (count, code) = result else { throw .closed }
        if count > 0 {
            // A stream socket that gives less than asked has no more: the next edge will tell.
            if count < buffer.count { readiness.readDrained() }
            return .bytes(count)
        }
        if count == 0 { return .endOfStream(isClean: true) }
        if code == EAGAIN || code == EWOULDBLOCK {
            readiness.readDrained()
            return .wouldBlock
        }
        throw .system(SystemError(operation: "recv", code: code))
    }

    /// Tries to send; 0 when it would block.
    ///
    /// An edge that came before is left in its latch: it costs a needless try where the socket is full, once, and spares a
    /// lock everywhere else.
    package func send(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        let result = withDescriptor { descriptor in
            Socket.retrying {
                unsafe Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
            }
        }
        guard let (count, code) = result else { throw .closed }
        if count >= 0 { return count }
        if code == EAGAIN || code == EWOULDBLOCK { return 0 }
        throw .system(SystemError(operation: "send", code: code))
    }

    /// Repeats a call that a signal broke off; its result and the errno it left.
    package static func retrying(_ call: () -> Int) -> (Int, Int32) {
        while true {
            let result = call()
            if result >= 0 { return (result, 0) }
            let code = errno
            if code != EINTR { return (result, code) }
        }
    }

    /// Looks for an end, an error, or bytes, without taking any.
    package func peek() -> IdleState {
        let result = withDescriptor { descriptor -> Bool in
            var byte: UInt8 = 0
            let (count, code) = Socket.retrying { unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK)) }
            return count < 0 && (code == EAGAIN || code == EWOULDBLOCK)
        }
        return result == true ? .quiet : .unusable
    }

    /// Asks the kernel for bytes, an end or an error; where there is nothing, other threads have their turn.
    func looksReadable() -> Bool {
        // Not by a look into the socket: the kernel tells of a reset once, and it is the reader who must hear of it.
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

    /// Ends the writing direction.
    package func shutdownWriting() { _ = withDescriptor { shutdown($0, Int32(SHUT_WR)) } }

    /// Makes closing send a reset and throw away what was not yet sent.
    package func resetOnClose() {
        _ = withDescriptor { descriptor in
            var option = linger(l_onoff: 1, l_linger: 0)
            return unsafe setsockopt(
                descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
    }

    // MARK: Waiting

    /// Waits for a direction.
    package func wait(
        for direction: Readiness.Direction, until deadline: MonotonicTime
    ) async throws(TransportError) {
        switch await readiness.wait(for: direction, until: deadline) {
        case .ready: return
        case .timedOut: throw .timedOut
        case .interrupted: throw .interrupted
        case .closed: throw .closed
        }
    }

    // MARK: Addresses and options

    /// The address of this side.
    package var localAddress: SocketAddress? {
        withDescriptor { descriptor in unsafe SocketAddress.filled { unsafe getsockname(descriptor, $0, $1) }
        } ?? nil
    }

    /// The address of the other side.
    package var remoteAddress: SocketAddress? {
        withDescriptor { descriptor in unsafe SocketAddress.filled { unsafe getpeername(descriptor, $0, $1) }
        } ?? nil
    }

    /// Has the kernel report the socket as readable only when so many bytes are there (`SO_RCVLOWAT`).
    func setReceiveLowWater(_ count: Int) {
        guard receiveLowWater.load(ordering: .relaxed) != count else { return }
        receiveLowWater.store(count, ordering: .relaxed)
        _ = withDescriptor { descriptor in
            var value = Int32(clamping: count)
            let size = socklen_t(MemoryLayout<Int32>.size)
            return unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVLOWAT, &value, size)
        }
    }

    /// Sets `TCP_NODELAY` on an accepted socket; one that its peer has reset already may refuse, which is no loss.
    func sendSmallWritesAtOnce() {
        _ = withDescriptor { descriptor in
            var value: Int32 = 1
            let size = socklen_t(MemoryLayout<Int32>.size)
            return unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &value, size)
        }
    }
}
