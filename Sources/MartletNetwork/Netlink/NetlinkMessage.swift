import MartletTransport

/// One message of a netlink datagram (RFC 3549 §2.2): its header, and the bytes behind it.
package struct NetlinkMessage: Hashable, Sendable {
    /// What it is: ``Kind`` has those that are understood.
    package var type: UInt16
    /// `NLM_F_…`.
    package var flags: UInt16
    /// The number of the request it answers; 0 for news.
    package var sequence: UInt32
    /// What the header's length counts, without the header.
    package var payload: ArraySlice<UInt8>

    /// The types of messages.
    package enum Kind {
        /// An error, or with the number 0 an acknowledgement.
        package static let error: UInt16 = 2
        /// The end of an answer of several messages.
        package static let done: UInt16 = 3
        /// Data was lost.
        package static let overrun: UInt16 = 4
        /// A link that is there, or has changed.
        package static let newLink: UInt16 = 16
        /// A link that is gone.
        package static let deletedLink: UInt16 = 17
        /// Asks for links.
        package static let getLink: UInt16 = 18
        /// An address that is there.
        package static let newAddress: UInt16 = 20
        /// An address that is gone.
        package static let deletedAddress: UInt16 = 21
        /// Asks for addresses.
        package static let getAddress: UInt16 = 22
        /// A route that is there.
        package static let newRoute: UInt16 = 24
        /// A route that is gone.
        package static let deletedRoute: UInt16 = 25
        /// Asks for routes.
        package static let getRoute: UInt16 = 26
    }

    /// The flag of an answer that was not taken of one state: something changed meanwhile (`NLM_F_DUMP_INTR`).
    package static let interrupted: UInt16 = 0x10
    /// The length of the header.
    static let headerCount = 16

    /// The messages of a datagram, in order.
    ///
    /// - Parameter datagram: As it was received, whole; its first byte has the index 0 where faults are to point right.
    /// - Throws: What is wrong with a header. Nothing that a length says is taken for granted.
    package static func messages(in datagram: ArraySlice<UInt8>) throws(NetlinkFault) -> [NetlinkMessage] {
        var messages: [NetlinkMessage] = []
        var rest = datagram
        while !rest.isEmpty {
            let length: UInt32 = try NetlinkNumber.read(from: rest, at: 0, "nlmsghdr.length")
            guard let count = Int(exactly: length), count >= headerCount, count <= rest.count else {
                throw NetlinkFault("nlmsghdr.length", at: rest.startIndex)
            }
            let message = rest.prefix(count)
            messages.append(
                NetlinkMessage(
                    type: try NetlinkNumber.read(from: message, at: 4, "nlmsghdr.type"),
                    flags: try NetlinkNumber.read(from: message, at: 6, "nlmsghdr.flags"),
                    sequence: try NetlinkNumber.read(from: message, at: 8, "nlmsghdr.sequence"),
                    payload: message.dropFirst(headerCount)))
            rest = rest.dropFirst(NetlinkMessage.aligned(count))
        }
        return messages
    }

    /// The next multiple of four: where the next message, or attribute, begins.
    static func aligned(_ count: Int) -> Int { (count + 3) & ~3 }

    /// The errno of an error, or of the end of an answer; 0 for none.
    /// - Throws: Where there are too few bytes for a number.
    package func errorCode() throws(NetlinkFault) -> Int32 {
        // Kernels before 2.6.27 end an answer without a number.
        if type == Kind.done, payload.isEmpty { return 0 }
        let bits: UInt32 = try NetlinkNumber.read(from: payload, at: 0, "nlmsgerr.error")
        // Negative, but for what makes no sense: the smallest number has no positive one.
        let code = Int32(bitPattern: bits)
        return code == .min ? .max : abs(code)
    }
}

/// The attributes behind the fixed part of a message: each a length, a type, and so many bytes.
package struct NetlinkAttributes: Sendable {
    /// One of them.
    package struct Attribute: Hashable, Sendable {
        /// Its type, without the two bits that say what its bytes are like.
        package var type: UInt16
        /// Its bytes.
        package var value: ArraySlice<UInt8>

        /// Its bytes as a number.
        func number<Number: FixedWidthInteger & UnsignedInteger>(
            _ field: String
        ) throws(NetlinkFault) -> Number { try NetlinkNumber.read(from: value, at: 0, field) }

        /// Its bytes as text, up to the zero that ends it.
        func text() -> String { String(decoding: value.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// All of them, in order.
    package let all: [Attribute]

    /// Reads attributes.
    ///
    /// Fewer than four bytes behind the last one are padding, as the kernel has it.
    /// - Throws: Where a length is less than its own header's, or more than there is.
    package init(_ bytes: ArraySlice<UInt8>) throws(NetlinkFault) {
        var all: [Attribute] = []
        var rest = bytes
        while rest.count >= 4 {
            let length: UInt16 = try NetlinkNumber.read(from: rest, at: 0, "rtattr.length")
            let count = Int(length)
            guard count >= 4, count <= rest.count else {
                throw NetlinkFault("rtattr.length", at: rest.startIndex)
            }
            let type: UInt16 = try NetlinkNumber.read(from: rest, at: 2, "rtattr.type")
            all.append(Attribute(type: type & 0x3FFF, value: rest.prefix(count).dropFirst(4)))
            rest = rest.dropFirst(NetlinkMessage.aligned(count))
        }
        self.all = all
    }
}

/// Bytes that are no netlink message, or none of the kind they say they are.
package struct NetlinkFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// What could not be read, such as `nlmsghdr.length`.
    package let field: String
    /// The byte of the datagram it was noticed at, from 0.
    package let offset: Int

    /// A fault of a field.
    package init(_ field: String, at offset: Int) {
        self.field = field
        self.offset = offset
    }

    /// The field and its place.
    package var description: String { "netlink: \(field) is malformed at byte \(offset)" }
}

/// Numbers as netlink has them: in the machine's own order of bytes.
enum NetlinkNumber {
    /// Reads a number out of bytes that may be too few.
    /// - Parameter offset: Counted from the start of the slice; not negative.
    static func read<Number: FixedWidthInteger & UnsignedInteger>(
        _ type: Number.Type = Number.self, from bytes: ArraySlice<UInt8>, at offset: Int, _ field: String
    ) throws(NetlinkFault) -> Number {
        let count = Number.bitWidth / 8
        guard offset >= 0, bytes.count >= count, bytes.count - count >= offset else {
            throw NetlinkFault(field, at: bytes.endIndex)
        }
        var value: Number = 0
        for place in 0..<count {
            #if _endian(little)
                let index = bytes.startIndex + offset + count - 1 - place
            #else
                let index = bytes.startIndex + offset + place
            #endif
            value = value << 8 | Number(bytes[index])
        }
        return value
    }

    /// The bytes of a number.
    static func bytes(of number: some FixedWidthInteger & UnsignedInteger) -> [UInt8] {
        unsafe withUnsafeBytes(of: number) { unsafe [UInt8]($0) }
    }
}
