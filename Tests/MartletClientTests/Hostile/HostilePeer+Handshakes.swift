import MartletConditions
import MartletCore
import MartletDiagnostics
import MartletHosts
import MartletTesting

extension HostilePeer {
    /// A peer that waits for the first bytes of a ClientHello, sends data, and then closes its direction or waits.
    private static func handshake(
        _ name: String, _ bytes: [UInt8], ends: Bool = false, _ reason: HostileOutcome.Insecurity
    ) -> HostilePeer {
        let rest: [ScriptStep] = ends ? [.shutdownWriting, .awaitClose] : [.awaitClose]
        return HostilePeer(
            name, script: [.readBody(5), .send(bytes)] + rest, routes: [.handshake], .insecure(reason))
    }

    private static func handshake(_ name: String, _ text: String, _ reason: HostileOutcome.Insecurity)
        -> HostilePeer
    {
        handshake(name, Array(text.utf8), reason)
    }

    /// A peer that plays a script until the connect timeout expires.
    private static func stalling(_ name: String, _ steps: ScriptStep...) -> HostilePeer {
        HostilePeer(
            name, script: [.readBody(5)] + steps, request: .within(.connect, .seconds(2)),
            routes: [.handshake], .timedOut(.connect, .tlsHandshake))
    }

    /// Returns a TLS record (RFC 8446 §5.1).
    private static func record(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
        [type, 3, 3, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
    }

    private static func alert(_ level: UInt8, _ number: UInt8) -> [UInt8] { record(0x15, [level, number]) }

    /// Returns a TLS 1.2 ServerHello with a version and a cipher suite.
    private static func hello(
        version: [UInt8] = [3, 3], suite: [UInt8] = [0xC0, 0x2B],
        extensions: [UInt8] = [0, 5, 0xFF, 1, 0, 1, 0]
    ) -> [UInt8] {
        let body = version + [UInt8](repeating: 7, count: 32) + [0] + suite + [0] + extensions
        return record(0x16, [2, 0, 0, UInt8(body.count)] + body)
    }

    /// Fatal alerts of all kinds (RFC 8446 §6.2), and unassigned numbers.
    private static let alerts: [HostilePeer] = [
        10, 20, 21, 22, 30, 40, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 60, 71, 80, 86, 100, 109, 110, 111,
        112,
        113, 114, 115, 116, 120, 200, 255,
    ].map { number in
        handshake("Alert \(number) for a hello", alert(2, number), .alert(Int(number)))
    }

    /// Data that a peer sends in place of its part of a TLS handshake.
    static let handshakes: [HostilePeer] =
        alerts + [
            handshake("Alert 70 for a hello", alert(2, 70), .version),
            handshake("A close_notify for a hello", alert(1, 0), ends: true, .truncated),
            handshake("A warning for a hello, and the end", alert(1, 112), ends: true, .truncated),
            handshake(
                "A hundred warnings for a hello", Array(repeatElement(alert(1, 112), count: 100).joined()),
                .garbage),
            handshake("An alert of no level", alert(3, 40), .garbage),
            handshake("Half an alert, and the end", Array(alert(2, 40).dropLast()), ends: true, .truncated),
            handshake("An alert of three bytes", record(0x15, [2, 40, 0]), .garbage),
            handshake("An alert of no bytes", record(0x15, []), .garbage),
            handshake("Plain HTTP for a hello", HostileScene.good, .notTLS),
            handshake("A page for a hello", "<html>EVIL</html>", .notTLS),
            handshake("SSH for a hello", "SSH-2.0-OpenSSH_9.2p1\r\n", .notTLS),
            handshake("SMTP for a hello", "220 mail.example ESMTP\r\n", .notTLS),
            handshake("Zeros for a hello", [UInt8](repeating: 0, count: 64), .notTLS),
            handshake("Ones for a hello", [UInt8](repeating: 0xFF, count: 64), .notTLS),
            handshake("A record of another kind of version", [0x16, 9, 9, 0, 5, 2, 0, 0, 1, 0], .notTLS),
            handshake(
                "A record longer than any may be",
                [0x16, 3, 3, 0xFF, 0xFF] + [UInt8](repeating: 2, count: 100), .garbage),
            handshake("Bytes of the application for a hello", record(0x17, [1, 2, 3, 4, 5]), .garbage),
            handshake("A change of ciphers for a hello", record(0x14, [1]), .garbage),
            handshake(
                "Empty records for a hello", Array(repeatElement(record(0x16, []), count: 100).joined()),
                .garbage),
            handshake("A hello of 16 MiB", record(0x16, [2, 0xFF, 0xFF, 0xFF, 3, 3]), .garbage),
            handshake("A certificate before the hello", record(0x16, [11, 0, 0, 3, 0, 0, 0]), .garbage),
            handshake(
                "A request for a hello, for a hello", record(0x16, [0, 0, 0, 0]), ends: true, .truncated),
            handshake("A client's hello for a hello", record(0x16, [1, 0, 0, 2, 3, 3]), .garbage),
            handshake("A hello of an old version", hello(version: [3, 1]), .version),
            handshake("A hello of a version of the future", hello(version: [3, 9]), .version),
            handshake("A hello with a cipher nobody offered", hello(suite: [0, 0]), .garbage),
            handshake("A hello that knows no safe renegotiation", hello(extensions: []), .garbage),
            handshake("A hello without its end", Array(hello().dropLast(4)), ends: true, .truncated),
            handshake("A hello and then none of the rest", hello(), ends: true, .truncated),
            handshake("The end for a hello", [], ends: true, .truncated),
            handshake("One byte for a hello", [0x16], ends: true, .truncated),
            HostilePeer(
                "A reset for a hello", script: [.readBody(5), .reset], routes: [.handshake],
                .unreachable),
            stalling("Silence for a hello", .awaitClose),
            stalling("Half a record for a hello", .send([0x16, 3, 3]), .awaitClose),
            stalling("A hello and then nothing", .send(hello()), .awaitClose),
            stalling(
                "A record byte by byte",
                .drip([0x16, 3, 3, 1, 0, 2] + [UInt8](repeating: 0, count: 250), every: .milliseconds(10)),
                .awaitClose),
            stalling("An unread hello", .stall),
        ]
}
