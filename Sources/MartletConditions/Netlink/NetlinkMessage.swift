/// One message of a netlink datagram (RFC 3549 §2.2): its header, and its payload.
package struct NetlinkMessage: Hashable, Sendable {
    /// The type; ``Kind`` lists the supported types.
    package var type: UInt16
    /// The flags of the message, `NLM_F_…`.
    package var flags: UInt16
    /// The number of the request that the message responds to; 0 for notifications.
    package var sequence: UInt32
    /// The bytes within the header's length, without the header.
    package var payload: ArraySlice<UInt8>

    enum Kind {
        /// An error; with the number 0 an acknowledgement.
        static let error: UInt16 = 2
        /// The end of a response of several messages.
        static let done: UInt16 = 3
        /// Data was lost.
        static let overrun: UInt16 = 4
        // An object that exists or has changed, and an object that was removed.
        static let newLink: UInt16 = 16
        static let deletedLink: UInt16 = 17
        static let newAddress: UInt16 = 20
        static let deletedAddress: UInt16 = 21
        static let newRoute: UInt16 = 24
        static let deletedRoute: UInt16 = 25
    }

    /// The flag of a response that is not a snapshot: something changed in the meantime (`NLM_F_DUMP_INTR`).
    static let interrupted: UInt16 = 0x10

    /// Returns the bytes of a request.
    /// - Parameters:
    ///   - type: The type of the messages in the response. The type of the request is higher by two.
    ///   - isDump: Whether all objects are requested (`NLM_F_DUMP`).
    static func request(_ type: UInt16, isDump: Bool, sequence: UInt32, _ payload: [UInt8]) -> [UInt8] {
        let flags: UInt16 = isDump ? 0x301 : 0x1
        return NetlinkNumber.bytes(of: UInt32(clamping: 16 + payload.count)) + NetlinkNumber.bytes(of: type + 2)
            + NetlinkNumber.bytes(of: flags) + NetlinkNumber.bytes(of: sequence) + NetlinkNumber.bytes(of: 0 as UInt32)
            + payload
    }

    /// Returns the messages of a datagram, in order.
    /// - Parameter datagram: The whole datagram. Its first byte has the index 0, so that errors have the right offsets.
    /// - Throws: ``NetlinkError`` for a malformed header. No length in the datagram is trusted.
    package static func messages(in datagram: ArraySlice<UInt8>) throws(NetlinkError) -> [NetlinkMessage] {
        let records = try NetlinkNumber.records(
            in: datagram, UInt32.self, headerCount: 16, allowsPadding: false, "nlmsghdr.length")
        return try records.map { record throws(NetlinkError) in
            NetlinkMessage(
                type: try NetlinkNumber.read(from: record, at: 4, "nlmsghdr.type"),
                flags: try NetlinkNumber.read(from: record, at: 6, "nlmsghdr.flags"),
                sequence: try NetlinkNumber.read(from: record, at: 8, "nlmsghdr.sequence"),
                payload: record.dropFirst(16))
        }
    }

    /// Returns the errno in an error message, or at the end of a response; 0 for none.
    /// - Throws: ``NetlinkError`` for a number with too few bytes.
    func errorCode() throws(NetlinkError) -> Int32 {
        // Kernels before 2.6.27 end a response without a number.
        if type == Kind.done, payload.isEmpty { return 0 }
        let bits: UInt32 = try NetlinkNumber.read(from: payload, at: 0, "nlmsgerr.error")
        // The kernel sends negative numbers. The smallest one is invalid, and has no positive counterpart.
        let code = Int32(bitPattern: bits)
        return code == .min ? .max : abs(code)
    }
}

/// One attribute after the fixed part of a message.
struct NetlinkAttribute: Hashable, Sendable {
    /// The type, without the two bits that describe the format of the value.
    var type: UInt16
    var value: ArraySlice<UInt8>

    /// Returns the attributes in bytes, in order. Fewer than four bytes after the last one are padding.
    /// - Throws: ``NetlinkError`` for a length that is less than that of the header, or more than the rest.
    static func all(in bytes: ArraySlice<UInt8>) throws(NetlinkError) -> [NetlinkAttribute] {
        let records = try NetlinkNumber.records(in: bytes, UInt16.self, headerCount: 4, "rtattr.length")
        return try records.map { record throws(NetlinkError) in
            let type: UInt16 = try NetlinkNumber.read(from: record, at: 2, "rtattr.type")
            return NetlinkAttribute(type: type & 0x3FFF, value: record.dropFirst(4))
        }
    }

    func number<Number: FixedWidthInteger & UnsignedInteger>(_ field: String) throws(NetlinkError) -> Number {
        try NetlinkNumber.read(from: value, at: 0, field)
    }

    /// The value as text, up to the zero that ends it.
    var text: String { String(decoding: value.prefix { $0 != 0 }, as: UTF8.self) }

    /// Returns the bytes of an attribute, with padding.
    static func bytes(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        let length = NetlinkNumber.bytes(of: UInt16(clamping: value.count + 4))
        let bytes = length + NetlinkNumber.bytes(of: type) + value
        return bytes + [UInt8](repeating: 0, count: NetlinkNumber.aligned(bytes.count) - bytes.count)
    }
}

package struct NetlinkError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The field that could not be read, such as `nlmsghdr.length`.
    package let field: String
    /// The byte of the datagram with the error, from 0.
    package let offset: Int

    package init(_ field: String, at offset: Int) { (self.field, self.offset) = (field, offset) }

    package var description: String { "netlink: \(field) is malformed at byte \(offset)" }
}

/// Numbers and lengths in netlink messages, in the machine's own byte order.
enum NetlinkNumber {
    /// Reads a number; checks that there are enough bytes.
    /// - Parameter offset: The offset from the start of the slice.
    static func read<Number: FixedWidthInteger & UnsignedInteger>(
        _ type: Number.Type = Number.self, from bytes: ArraySlice<UInt8>, at offset: Int, _ field: String
    ) throws(NetlinkError) -> Number {
        let source = bytes.dropFirst(offset).prefix(Number.bitWidth / 8)
        guard source.count == Number.bitWidth / 8 else { throw NetlinkError(field, at: bytes.endIndex) }
        var value: Number = 0
        unsafe withUnsafeMutableBytes(of: &value) { unsafe $0.copyBytes(from: source) }
        return value
    }

    static func bytes(of number: some FixedWidthInteger & UnsignedInteger) -> [UInt8] {
        unsafe withUnsafeBytes(of: number) { unsafe [UInt8]($0) }
    }

    /// Returns the next multiple of four, where the next record begins.
    static func aligned(_ count: Int) -> Int { (count + 3) & ~3 }

    /// Splits bytes into records that begin with their length.
    /// - Parameters:
    ///   - headerCount: The minimum length of a record.
    ///   - allowsPadding: Whether fewer bytes than those of a header may follow the last record.
    /// - Throws: ``NetlinkError`` for a length that is less than that of the header, or more than the rest.
    static func records<Length: FixedWidthInteger & UnsignedInteger>(
        in bytes: ArraySlice<UInt8>, _ length: Length.Type, headerCount: Int, allowsPadding: Bool = true,
        _ field: String
    ) throws(NetlinkError) -> [ArraySlice<UInt8>] {
        var records: [ArraySlice<UInt8>] = []
        var rest = bytes
        while allowsPadding ? rest.count >= headerCount : !rest.isEmpty {
            let count = Int(clamping: try read(length, from: rest, at: 0, field))
            guard count >= headerCount, count <= rest.count else { throw NetlinkError(field, at: rest.startIndex) }
            records.append(rest.prefix(count))
            rest = rest.dropFirst(aligned(count))
        }
        return records
    }
}
