import MartletConditions
import MartletContent
import MartletTransport

extension FuzzEntry {
    /// Datagrams of the kernel about links, addresses and routes.
    ///
    /// Each datagram is read as the response to each query, with the sequence number of its first message, and as an
    /// event. The kernel is trusted, but a newer kernel and other senders are not.
    static let netlink = FuzzEntry("netlink") { (bytes) throws(FuzzFinding) in
        let messages: [NetlinkMessage]
        do throws(NetlinkError) {
            messages = try NetlinkMessage.messages(in: bytes[...])
        } catch {
            try check(error, bytes)
            try require(NetlinkEventRule.matters(bytes[...]), "what cannot be read is no news")
            return
        }
        let byteCount = messages.reduce(0) { $0 + $1.payload.count + 16 }
        try require(byteCount <= bytes.count, "\(byteCount) bytes of messages in \(bytes.count)")
        _ = NetlinkEventRule.matters(bytes[...])
        let sequence = messages.first?.sequence ?? 0
        _ = try? RouteReply(bytes, sequence: sequence)
        var table = NetworkTable()
        for query in NetlinkDump.Query.allCases {
            var dump = NetlinkDump(query, sequence: sequence)
            var whole = NetworkTable()
            let result: Result<NetlinkDump.Progress, NetlinkError>
            do throws(NetlinkError) {
                result = .success(try dump.receive(bytes, into: &whole))
            } catch {
                try check(error, bytes)
                result = .failure(error)
            }
            try checkPieces(query, messages, bytes, sequence, result, whole)
            table.links += whole.links
            table.addresses += whole.addresses
            table.routes += whole.routes
        }
        try checkPath(table)
    }

    private static func check(_ fault: NetlinkError, _ bytes: [UInt8]) throws(FuzzFinding) {
        try require(
            !fault.field.isEmpty && (0...bytes.count).contains(fault.offset), "\(fault) points nowhere")
    }

    /// Checks that each message in a separate datagram has the same result.
    private static func checkPieces(
        _ query: NetlinkDump.Query, _ messages: [NetlinkMessage], _ bytes: [UInt8], _ sequence: UInt32,
        _ result: Result<NetlinkDump.Progress, NetlinkError>, _ whole: NetworkTable
    ) throws(FuzzFinding) {
        var dump = NetlinkDump(query, sequence: sequence)
        var table = NetworkTable()
        var progress = NetlinkDump.Progress.more
        for message in messages where progress == .more {
            let start = message.payload.startIndex - 16
            do throws(NetlinkError) {
                progress = try dump.receive(Array(bytes[start..<message.payload.endIndex]), into: &table)
            } catch {
                guard case .failure(let fault) = result else {
                    throw FuzzFinding("\(error) in pieces, and none at once")
                }
                try require(
                    fault == NetlinkError(error.field, at: error.offset + start),
                    "\(error) in pieces, \(fault) at once")
                return
            }
        }
        try require(table == whole, "\(table) in pieces, \(whole) at once")
        guard case .success(let expected) = result, progress == expected else {
            throw FuzzFinding("\(progress) in pieces, \(result) at once")
        }
    }

    private static func checkPath(_ table: NetworkTable) throws(FuzzFinding) {
        let path = NetworkPathRule(table).path
        try require(path.isSatisfied == !path.interfaces.isEmpty, "\(path) with \(path.interfaces.count)")
        try require(
            path.isSatisfied == (path.supportsIPv4 || path.supportsIPv6), "\(path) by no version of IP")
        try require(
            Set(path.interfaces.map(\.index)).count == path.interfaces.count, "an interface twice in \(path)")
        for interface in path.interfaces {
            try require(
                interface.addresses.allSatisfy { IPAddress($0) != nil }, "addresses \(interface.addresses)")
        }
    }
}
