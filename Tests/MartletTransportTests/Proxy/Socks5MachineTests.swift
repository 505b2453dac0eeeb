import MartletTransport
import Testing

@Suite("The SOCKS5 handshake")
struct Socks5MachineTests {
    private static let greeting: [UInt8] = [5, 1, 0]
    private static let success: [UInt8] = [5, 0, 0, 1, 127, 0, 0, 1, 0x1F, 0x90]

    /// Runs a complete handshake against literal bytes that arrive in pieces of the given size.
    /// - Returns: The sent bytes and the number of consumed bytes.
    private func run(
        _ target: Socks5Machine.Target, _ credentials: ProxyCredentials? = nil, answers: [UInt8],
        pieces: Int = .max
    ) throws(Socks5Error) -> (sent: [[UInt8]], used: Int) {
        var machine = try Socks5Machine(target: target, credentials: credentials)
        var sent = [machine.start()]
        var used = 0
        while machine.wantedByteCount > 0, used < answers.count {
            let piece = answers[used...].prefix(min(pieces, machine.wantedByteCount))
            used += piece.count
            let request = try machine.receive(piece)
            if !request.isEmpty { sent.append(request) }
        }
        guard machine.isEstablished else {
            throw machine.receiveEndOfStream() ?? .truncated(receivedByteCount: -1)
        }
        return (sent, used)
    }

    private func address(_ literal: String, _ port: Int) throws -> Socks5Machine.Target {
        .address(try #require(SocketAddress(literal: literal, port: port)))
    }

    @Test("A name is sent with its length and its port", arguments: [1, 2, 3, .max])
    func name(pieces: Int) throws {
        let (sent, used) = try run(
            .name("example.com", port: 443), answers: [5, 0] + Self.success, pieces: pieces)
        #expect(sent == [Self.greeting, [5, 1, 0, 3, 11] + Array("example.com".utf8) + [1, 0xBB]])
        #expect(used == 12)
    }

    @Test("An IPv4 address is sent as four bytes")
    func ipv4() throws {
        let (sent, _) = try run(try address("192.0.2.7", 80), answers: [5, 0] + Self.success)
        #expect(sent == [Self.greeting, [5, 1, 0, 1, 192, 0, 2, 7, 0, 80]])
    }

    @Test("An IPv6 address is sent as sixteen bytes")
    func ipv6() throws {
        let (sent, _) = try run(try address("2001:db8::1", 8080), answers: [5, 0] + Self.success)
        let bytes: [UInt8] = [0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
        #expect(sent == [Self.greeting, [5, 1, 0, 4] + bytes + [0x1F, 0x90]])
    }

    @Test("The user name and password are sent when the proxy requests them", arguments: [1, .max])
    func credentials(pieces: Int) throws {
        let (sent, used) = try run(
            .name("a", port: 1), ProxyCredentials(user: "me", password: "pässe"),
            answers: [5, 2, 1, 0] + Self.success, pieces: pieces)
        let credentials: [UInt8] = [1, 2] + Array("me".utf8) + [6] + Array("pässe".utf8)
        #expect(sent == [[5, 2, 0, 2], credentials, [5, 1, 0, 3, 1, 97, 0, 1]])
        #expect(used == 14)
    }

    @Test("Credentials that are not requested are not sent")
    func unrequestedCredentials() throws {
        let (sent, _) = try run(
            .name("a", port: 1), ProxyCredentials(user: "me", password: "p"), answers: [5, 0] + Self.success)
        #expect(sent.count == 2)
    }

    @Test("Bytes after the reply are left to the tunnel for each address type in the reply")
    func replyLengths() throws {
        let replies: [[UInt8]] = [
            Self.success,
            [5, 0, 0, 3, 3, 97, 98, 99, 0, 80],
            [5, 0, 0, 3, 0, 0, 80],
            [5, 0, 0, 4] + [UInt8](repeating: 9, count: 18),
        ]
        for reply in replies {
            let (_, used) = try run(.name("a", port: 1), answers: [5, 0] + reply + [1, 2, 3])
            #expect(used == 2 + reply.count)
        }
    }

    @Test("Each reply code other than success is immediately a distinct error", arguments: UInt8(1)...255)
    func codes(code: UInt8) throws {
        let fault = #expect(throws: Socks5Error.self) {
            _ = try run(.name("a", port: 1), answers: [5, 0, 5, code])
        }
        #expect(fault == .rejected(Socks5Reply(rawValue: code)))
        #expect(fault?.isAboutAddress == [1, 3, 4, 5, 6, 8].contains(code))
    }

    @Test("Another version is rejected at its first byte")
    func versions() throws {
        for answers in [[4], [72, 84, 84, 80], [0], [5, 0, 4], [5, 0, 0]] as [[UInt8]] {
            let fault = #expect(throws: Socks5Error.self) {
                _ = try run(.name("a", port: 1), answers: answers, pieces: 1)
            }
            #expect(
                fault == .wrongVersion(answers.last(where: { $0 != 5 }) ?? 0) || fault == .wrongVersion(72))
        }
        let fault = #expect(throws: Socks5Error.self) {
            _ = try run(
                .name("a", port: 1), ProxyCredentials(user: "u", password: "p"), answers: [5, 2, 5, 0])
        }
        #expect(fault == .wrongVersion(5))
    }

    @Test("An authentication method that was not offered is rejected")
    func methods() throws {
        for (answer, expected) in [
            (0xFF, Socks5Error.noAcceptableMethod), (2, .unofferedMethod(2)), (1, .unofferedMethod(1)),
        ] as [(UInt8, Socks5Error)] {
            let fault = #expect(throws: Socks5Error.self) {
                _ = try run(.name("a", port: 1), answers: [5, answer])
            }
            #expect(fault == expected)
        }
    }

    @Test("Rejected credentials are reported as such")
    func rejectedCredentials() throws {
        let fault = #expect(throws: Socks5Error.self) {
            _ = try run(
                .name("a", port: 1), ProxyCredentials(user: "u", password: "p"), answers: [5, 2, 1, 1])
        }
        #expect(fault == .credentialsRejected)
    }

    @Test("An unknown address type in the reply is rejected")
    func addressType() throws {
        let fault = #expect(throws: Socks5Error.self) {
            _ = try run(.name("a", port: 1), answers: [5, 0, 5, 0, 0, 2, 1])
        }
        #expect(fault == .invalidAddressType(2))
    }

    @Test("The end of the stream before the tunnel is a truncation")
    func truncation() throws {
        let whole = [5, 0] + Self.success
        for length in 0..<whole.count {
            let fault = #expect(throws: Socks5Error.self) {
                _ = try run(.name("a", port: 1), answers: Array(whole.prefix(length)))
            }
            #expect(fault == .truncated(receivedByteCount: length < 2 ? length : length - 2))
        }
    }

    @Test("After an error the same error is thrown again, and no bytes are requested")
    func faultStays() throws {
        var machine = try Socks5Machine(target: .name("a", port: 1), credentials: nil)
        _ = machine.start()
        #expect(throws: Socks5Error.wrongVersion(4)) { _ = try machine.receive([4, 0]) }
        #expect(machine.wantedByteCount == 0)
        #expect(throws: Socks5Error.wrongVersion(4)) { _ = try machine.receive([5, 0]) }
        #expect(machine.receiveEndOfStream() == .wrongVersion(4))
    }

    @Test("Names and credentials that are too long are rejected before anything is sent")
    func lengths() throws {
        let long = String(repeating: "x", count: 256)
        #expect(throws: Socks5Error.invalidName(byteCount: 256)) {
            _ = try Socks5Machine(target: .name(long, port: 1), credentials: nil)
        }
        #expect(throws: Socks5Error.invalidName(byteCount: 0)) {
            _ = try Socks5Machine(target: .name("", port: 1), credentials: nil)
        }
        for (user, password) in [("", "p"), (long, "p"), ("u", long)] {
            #expect(throws: Socks5Error.invalidCredentials) {
                _ = try Socks5Machine(
                    target: .name("a", port: 1),
                    credentials: ProxyCredentials(user: user, password: password))
            }
        }
        let longest = String(repeating: "x", count: 255)
        let (sent, _) = try run(
            .name(longest, port: 1), ProxyCredentials(user: longest, password: longest),
            answers: [5, 2, 1, 0] + Self.success)
        #expect(sent.map(\.count) == [4, 513, 262])
    }

    @Test("Random bytes end the handshake in the tunnel or in an error")
    func garbage() throws {
        var state: UInt64 = 42
        for _ in 0..<2_000 {
            var machine = try Socks5Machine(
                target: .name("a", port: 1), credentials: ProxyCredentials(user: "u", password: "p"))
            _ = machine.start()
            var count = 0
            do throws(Socks5Error) {
                while machine.wantedByteCount > 0 {
                    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    // Small numbers reach later states.
                    let byte = UInt8(truncatingIfNeeded: state >> 40) % (count % 3 == 0 ? 6 : 4)
                    _ = try machine.receive([byte])
                    count += 1
                }
                #expect(machine.isEstablished)
            } catch {
                #expect(!machine.isEstablished)
            }
            #expect(count <= 300)
        }
    }
}
