import MartletPool
import MartletTransport
import Testing

@Suite("Lost local addresses")
struct LostAddressesTests {
    private func set(_ texts: String...) -> Set<IPAddress> { Set(texts.compactMap { IPAddress($0) }) }

    @Test("An address that disappears is lost until it returns")
    func lost() {
        var loss = LostAddresses()
        let first = loss.update(set("192.0.2.1", "2001:db8::1"))
        #expect(!first)
        #expect(!loss.isLost("192.0.2.1:80"))
        let second = loss.update(set("2001:db8::1"))
        #expect(second)
        #expect(loss.isLost("192.0.2.1:80"))
        #expect(!loss.isLost("[2001:db8::1]:80"))
        let third = loss.update(set("2001:db8::1"))
        #expect(!third)
        #expect(loss.isLost("192.0.2.1:4711"))
        let fourth = loss.update(set("192.0.2.1"))
        #expect(fourth)
        #expect(!loss.isLost("192.0.2.1:80"))
        #expect(loss.isLost("[2001:db8::1]:80"))
    }

    @Test("Unknown addresses, invalid addresses and loopback addresses are never lost")
    func kept() {
        var loss = LostAddresses()
        _ = loss.update(set("192.0.2.1", "127.0.0.1", "::1"))
        _ = loss.update([])
        for text in ["192.0.2.2:1", "127.0.0.1:1", "[::1]:1", "memory", "", "/run/socket"] {
            #expect(!loss.isLost(text), "\(text)")
        }
        #expect(loss.isLost("192.0.2.1:1"))
    }

    @Test("The number of remembered lost addresses is limited")
    func bounded() {
        var loss = LostAddresses()
        for number in 0..<5_000 {
            _ = loss.update(
                Set(
                    [IPAddress(bytes: [192, 0, UInt8(number / 256), UInt8(number % 256)])].compactMap(\.self))
            )
            #expect(loss.lost.count <= 1_024)
        }
        #expect(loss.isLost("192.0.19.134:1"))
    }
}
