"""Reports as the tools write them, one a dialect, each with what is typical for it."""

SUREFIRE = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="org.example.CartTest" time="1,234.5" tests="5" errors="1" skipped="1" failures="1">
  <properties><property name="java.version" value="21"/></properties>
  <testcase name="adds" classname="org.example.CartTest" time="0.01"/>
  <testcase name="totals" classname="org.example.CartTest" time="0.02">
    <failure message="expected: &lt;3&gt; but was: &lt;2&gt;" type="org.opentest4j.AssertionFailedError">
<![CDATA[org.opentest4j.AssertionFailedError: expected: <3> but was: <2>
\tat org.example.CartTest.totals(CartTest.java:42)
]]></failure>
    <rerunFailure message="expected: &lt;3&gt; but was: &lt;2&gt;" type="org.opentest4j.AssertionFailedError">
      <stackTrace>again at CartTest.java:42</stackTrace>
    </rerunFailure>
    <system-out><![CDATA[cart has 2 items]]></system-out>
    <system-err>oops</system-err>
  </testcase>
  <testcase name="loads" classname="org.example.CartTest">
    <error message="Connection refused" type="java.net.ConnectException">
java.net.ConnectException: Connection refused</error>
  </testcase>
  <testcase name="races" classname="org.example.CartTest">
    <flakyFailure message="too late" type="java.lang.AssertionError">
      <stackTrace>at CartTest.java:77</stackTrace>
    </flakyFailure>
  </testcase>
  <testcase name="later" classname="org.example.CartTest"><skipped message="not yet"/></testcase>
</testsuite>
"""

PYTEST = b"""<?xml version="1.0" encoding="utf-8"?><testsuites>
<testsuite name="pytest" errors="1" failures="1" tests="3">
<testcase classname="tests.test_sum" name="test_ok" time="0.001" />
<testcase classname="tests.test_sum" name="test_bad" file="tests/test_sum.py" line="4" time="0.002">
<failure message="AssertionError: assert 1 == 2">def test_bad():
&gt;       assert one() == 2
E       assert 1 == 2
E        +  where 1 = one()

tests/test_sum.py:5: AssertionError</failure></testcase>
<testcase classname="" name="tests.test_gone" time="0.0">
<error message="collection failure">E   ModuleNotFoundError: No module named 'gone'</error></testcase>
</testsuite></testsuites>"""

GTEST = b"""<testsuites tests="3" failures="1" disabled="0" errors="0" name="AllTests">
  <testsuite name="Queue" tests="3">
    <testcase name="Pops" file="queue_test.cc" line="12" status="run" result="completed" time="0." classname="Queue">
      <failure message="queue_test.cc:14&#x0A;Value of: q.size()" type=""><![CDATA[queue_test.cc:14
Value of: q.size()]]></failure>
      <failure message="queue_test.cc:15&#x0A;Expected: true" type=""><![CDATA[queue_test.cc:15
Expected: true]]></failure>
    </testcase>
    <testcase name="Pushes" status="run" result="completed" classname="Queue"/>
    <testcase name="Waits" status="notrun" result="suppressed" classname="Queue"/>
  </testsuite>
</testsuites>"""

XUNIT_NET = b"""\xef\xbb\xbf<assemblies timestamp="07/01/2026">
<assembly name="a.dll" total="3" passed="1" failed="1" skipped="1">
<errors><error type="assembly-cleanup" name="a.dll">
<failure exception-type="System.IO.IOException"><message>file is locked</message></failure></error></errors>
<collection name="Test collection for Math" total="3">
<test name="Math.Adds" type="Math" method="Adds" time="0.1" result="Pass"/>
<test name="Math.Divides" type="Math" method="Divides" time="0.2" result="Fail">
<failure exception-type="Xunit.Sdk.EqualException"><message><![CDATA[Assert.Equal() Failure]]></message>
<stack-trace><![CDATA[   at Math.Divides() in Math.cs:line 9]]></stack-trace></failure>
<output>dividing</output></test>
<test name="Math.Later" type="Math" result="Skip"><reason>not yet</reason></test>
</collection></assembly></assemblies>"""

NUNIT = b"""<test-run id="2" testcasecount="3" result="Failed" total="3" passed="1" failed="2">
<test-suite type="Assembly" name="a.dll" result="Failed" site="Child">
<failure><message>One or more child tests had errors</message></failure>
<test-suite type="TestFixture" name="Fix" result="Failed" site="Child">
<test-case name="Good" fullname="Fix.Good" classname="Fix" result="Passed" duration="0.01"/>
<test-case name="Bad" fullname="Fix.Bad" classname="Fix" result="Failed" duration="0.02">
<failure><message><![CDATA[Expected: 1]]></message>
<stack-trace><![CDATA[at Fix.Bad() in Fix.cs:line 3]]></stack-trace></failure></test-case>
<test-case name="Ugly" fullname="Fix.Ugly" classname="Fix" result="Failed" label="Error">
<failure><message>boom</message></failure></test-case>
</test-suite></test-suite></test-run>"""

TESTING_FARM = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuites overall-result="failed">
 <testsuite name="/plans/one" result="failed" tests="2" stage="complete">
  <logs><log href="https://artifacts.example.org/1/tmt-run.log" name="tmt-log"/></logs>
  <testcase name="/tests/a" result="failed" time="3" serial-number="1">
   <logs><log href="https://artifacts.example.org/1/a/output.txt" name="testout.log"/></logs>
   <phases><phase name="Setup" result="PASS"/><phase name="Test" result="FAIL"/></phases>
   <guest name="client"><testing-environment name="provisioned"><property name="arch" value="aarch64"/>
   <property name="compose" value="Fedora-44"/></testing-environment></guest>
  </testcase>
  <testcase name="/tests/a" result="passed" serial-number="1"><guest name="server"/></testcase>
  <testcase name="/tests/b" result="error"/>
  <testcase name="/tests/c" result="pending"/>
 </testsuite>
 <testsuite name="/plans/two" result="error" tests="0" stage="complete">
  <logs><log href="https://artifacts.example.org/2/tmt-run.log" name="tmt-log"/></logs>
 </testsuite>
</testsuites>"""

ALL = {
    "surefire": SUREFIRE,
    "pytest": PYTEST,
    "gtest": GTEST,
    "xunit.net": XUNIT_NET,
    "nunit": NUNIT,
    "testing farm": TESTING_FARM,
}
