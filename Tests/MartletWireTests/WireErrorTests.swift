import MartletWire
import Testing

@Suite("Wire errors")
struct WireErrorTests {
    @Test("A remote error reports the problem and its byte offset")
    func remote() {
        let fault = WireScript("HTTP/1.1 200 OK\r\nbad\r\n\r\n").run().fault
        #expect(fault?.description == "a field line without a colon (at byte 20 of the message)")
        #expect(fault?.isLocalError == false)
    }

    @Test("A local error reports that nothing was written")
    func local() {
        var encoder = RequestEncoder()
        var fault: WireError?
        do throws(WireError) {
            try encoder.begin(method: "GET", target: "/a b")
        } catch {
            fault = error
        }
        let text =
            "the request target is empty or has a byte that is not visible ASCII (at index 2); "
            + "nothing was written"
        #expect(fault?.description == text)
        #expect(fault?.isLocalError == true)
    }

    @Test("A truncation reports the number of received bytes")
    func truncations() {
        #expect(
            WireError(.truncated(.head(received: 3)), at: 3).description
                == "the stream ended inside the head, after 3 bytes of it")
        #expect(WireError(.truncated(.chunked(received: 7)), at: 0).description.contains("after 7 bytes"))
        #expect(WireError(.truncated(.untilClose(received: 8)), at: 0).description.contains("after 8 bytes"))
        #expect(
            WireError(.emptyResponse, at: 0).description
                == "the peer closed the connection without a byte of a response")
    }
}
