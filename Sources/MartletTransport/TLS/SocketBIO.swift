import COpenSSL

/// OpenSSL's way to a ``Socket``: a BIO whose reads and writes go through the socket, and so through its
/// readiness latch, its guard on the descriptor's number, and `MSG_NOSIGNAL`. OpenSSL's own socket BIO writes
/// with `write`, which raises SIGPIPE when the peer is gone.
enum SocketBIO {
    /// The methods; set up once and never changed after, nor freed.
    private nonisolated(unsafe) static let method: OpaquePointer? = {
        let kind = BIO_get_new_index() | Int32(BIO_TYPE_SOURCE_SINK)
        guard let method = unsafe BIO_meth_new(kind, "martlet socket") else { return nil }
        unsafe BIO_meth_set_read_ex(method, readFromSocket)
        unsafe BIO_meth_set_write_ex(method, writeToSocket)
        unsafe BIO_meth_set_ctrl(method, control)
        return unsafe method
    }()

    /// A BIO on a channel, which must outlive it.
    static func make(_ channel: TLSChannel) -> OpaquePointer? {
        guard let method = unsafe method, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(channel).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }
}

private func channel(of bio: OpaquePointer?) -> TLSChannel? {
    guard let bio = unsafe bio, let raw = unsafe BIO_get_data(bio) else { return nil }
    return unsafe Unmanaged<TLSChannel>.fromOpaque(raw).takeUnretainedValue()
}

private func readFromSocket(
    _ bio: OpaquePointer?, _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: Int,
    _ count: UnsafeMutablePointer<Int>?
) -> Int32 {
    guard let channel = unsafe channel(of: bio), let buffer = unsafe buffer, capacity > 0 else { return 0 }
    unsafe martlet_bio_clear_retry(bio)
    do throws(TransportError) {
        let target = unsafe UnsafeMutableRawBufferPointer(start: buffer, count: capacity)
        switch unsafe try channel.receive(into: target) {
        case .bytes(let received):
            unsafe count?.pointee = received
            return 1
        case .wouldBlock: unsafe martlet_bio_retry_read(bio)
        case .endOfStream: channel.isAtEnd = true
        }
    } catch {
        channel.failure = error
    }
    return 0
}

private func writeToSocket(
    _ bio: OpaquePointer?, _ bytes: UnsafePointer<CChar>?, _ length: Int, _ count: UnsafeMutablePointer<Int>?
) -> Int32 {
    guard let channel = unsafe channel(of: bio), let bytes = unsafe bytes, length > 0 else { return 0 }
    unsafe martlet_bio_clear_retry(bio)
    do throws(TransportError) {
        let sent = unsafe try channel.send(UnsafeRawBufferPointer(start: bytes, count: length))
        if sent > 0 {
            unsafe count?.pointee = sent
            return 1
        }
        unsafe martlet_bio_retry_write(bio)
    } catch {
        channel.failure = error
    }
    return 0
}

private func control(_ bio: OpaquePointer?, _ command: Int32, _: Int, _: UnsafeMutableRawPointer?) -> Int {
    switch command {
    // Nothing is held back, so there is nothing to flush.
    case BIO_CTRL_FLUSH: 1
    // OpenSSL asks whether a failed read was the end of the stream.
    case BIO_CTRL_EOF: unsafe channel(of: bio)?.isAtEnd == true ? 1 : 0
    default: 0
    }
}
