-- TPC-C's nine tables, and CH-benCHmark's three of TPC-H: nation, region, supplier. Filled for :WAREHOUSES warehouses by the rules of
-- TPC-C's clause 4.3, as far as its transactions and CH-benCHmark's questions look at them: item, stock and customer data, a third of
-- the newest orders not delivered. setseed makes the rows the same each time. Days end on 2024-06-01; transactions go on from there.

CREATE TABLE warehouse (w_id int, w_name text, w_street_1 text, w_street_2 text, w_city text, w_state text, w_zip text,
    w_tax numeric(4,4), w_ytd numeric(14,2), PRIMARY KEY (w_id));
CREATE TABLE district (d_id int, d_w_id int, d_name text, d_street_1 text, d_street_2 text, d_city text, d_state text, d_zip text,
    d_tax numeric(4,4), d_ytd numeric(14,2), d_next_o_id int, PRIMARY KEY (d_w_id, d_id));
CREATE TABLE customer (c_id int, c_d_id int, c_w_id int, c_first text, c_middle text, c_last text, c_street_1 text, c_street_2 text,
    c_city text, c_state text, c_zip text, c_phone text, c_since timestamp, c_credit text, c_credit_lim numeric(12,2),
    c_discount numeric(4,4), c_balance numeric(12,2), c_ytd_payment numeric(12,2), c_payment_cnt int, c_delivery_cnt int, c_data text,
    PRIMARY KEY (c_w_id, c_d_id, c_id));
CREATE TABLE history (h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamp, h_amount numeric(6,2), h_data text);
CREATE TABLE orders (o_id int, o_d_id int, o_w_id int, o_c_id int, o_entry_d timestamp, o_carrier_id int, o_ol_cnt int, o_all_local int,
    PRIMARY KEY (o_w_id, o_d_id, o_id));
CREATE TABLE new_order (no_o_id int, no_d_id int, no_w_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id));
CREATE TABLE order_line (ol_o_id int, ol_d_id int, ol_w_id int, ol_number int, ol_i_id int, ol_supply_w_id int, ol_delivery_d timestamp,
    ol_quantity int, ol_amount numeric(6,2), ol_dist_info text, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number));
CREATE TABLE item (i_id int, i_im_id int, i_name text, i_price numeric(5,2), i_data text, PRIMARY KEY (i_id));
CREATE TABLE stock (s_i_id int, s_w_id int, s_quantity int, s_dist text, s_ytd numeric(8,0), s_order_cnt int, s_remote_cnt int,
    s_data text, PRIMARY KEY (s_w_id, s_i_id));
CREATE TABLE nation (n_nationkey int, n_name text, n_regionkey int, n_comment text, PRIMARY KEY (n_nationkey));
CREATE TABLE region (r_regionkey int, r_name text, r_comment text, PRIMARY KEY (r_regionkey));
CREATE TABLE supplier (su_suppkey int, su_name text, su_address text, su_nationkey int, su_phone text, su_acctbal numeric(12,2),
    su_comment text, PRIMARY KEY (su_suppkey));

SELECT setseed(0.25);

INSERT INTO region SELECT g - 1, (ARRAY['Africa', 'America', 'Asia', 'Europe', 'Middle East'])[g], 'no comment' FROM generate_series(1, 5) g;
-- A customer's nation is the code of the first sign of its state, a digit or a letter.
INSERT INTO nation SELECT ascii(sign), 'Nation ' || sign, (ordinality % 5)::int, md5(sign)
FROM unnest(string_to_array('0,1,2,3,4,5,6,7,8,9,A,B,C,D,E,F,G,H,I,J,K,L,M,N,O,P,Q,R,S,T,U,V,W,X,Y,Z,a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z', ','))
    WITH ORDINALITY AS s (sign, ordinality);
INSERT INTO supplier SELECT g, 'Supplier ' || g, 'Street ' || g % 997, (SELECT array_agg(n_nationkey ORDER BY n_nationkey) FROM nation)[1 + g % 62],
    lpad((g * 7919 % 100000)::text, 11, '0'), round((random() * 9999)::numeric, 2), CASE WHEN g % 200 = 0 THEN 'bad complaints' ELSE 'no remarks ' || md5(g::text) END
FROM generate_series(0, 9999) g;
INSERT INTO item SELECT g, 1 + (random() * 9999)::int, 'item ' || md5(g::text), round((1 + random() * 99)::numeric, 2),
    CASE WHEN g % 10 = 0 THEN 'ORIGINAL ' WHEN g % 7 = 0 THEN 'PR ' ELSE '' END || md5((g * 31)::text) || chr(97 + g % 26)
FROM generate_series(1, 100000) g;
INSERT INTO warehouse SELECT w, 'w' || w, 'a', 'b', 'c', chr(65 + w % 26) || 'X', '123411111', round((random() * 0.2)::numeric, 4), 300000
FROM generate_series(1, :WAREHOUSES) w;
INSERT INTO district SELECT d, w, 'd' || d, 'a', 'b', 'c', chr(65 + d) || 'Y', '123411111', round((random() * 0.2)::numeric, 4), 30000, 3001
FROM generate_series(1, :WAREHOUSES) w, generate_series(1, 10) d;
INSERT INTO stock SELECT i, w, 10 + (random() * 90)::int, md5((i * w)::text), 0, 0, 0,
    CASE WHEN i % 10 = 3 THEN 'ORIGINAL ' ELSE '' END || md5((i + w)::text)
FROM generate_series(1, :WAREHOUSES) w, generate_series(1, 100000) i;
INSERT INTO customer SELECT c, d, w, md5(c::text), 'OE', 'NAME' || c % 1000, 'street ' || c, 'b', 'city ' || c % 300,
    chr(65 + (random() * 25)::int) || chr(65 + c % 26), lpad((c % 10000)::text, 4, '0') || '11111', lpad((c * 7919)::text, 16, '0'),
    timestamp '2024-01-01' + c * interval '1 minute', CASE WHEN random() < 0.1 THEN 'BC' ELSE 'GC' END, 50000,
    round((random() * 0.5)::numeric, 4), -10, 10, 1, 0, repeat(md5((c + d)::text), 10)
FROM generate_series(1, :WAREHOUSES) w, generate_series(1, 10) d, generate_series(1, 3000) c;
INSERT INTO history SELECT c_id, c_d_id, c_w_id, c_d_id, c_w_id, c_since, 10, 'first' FROM customer;
INSERT INTO orders SELECT o, d, w, 1 + (o * 7919) % 3000, timestamp '2024-06-01' - (3000 - o) * interval '1 hour',
    CASE WHEN o <= 2100 THEN 1 + (random() * 9)::int END, 5 + (random() * 10)::int, 1
FROM generate_series(1, :WAREHOUSES) w, generate_series(1, 10) d, generate_series(1, 3000) o;
INSERT INTO new_order SELECT o_id, o_d_id, o_w_id FROM orders WHERE o_id > 2100;
INSERT INTO order_line SELECT o_id, o_d_id, o_w_id, n, 1 + (random() * 99999)::int, o_w_id, CASE WHEN o_id <= 2100 THEN o_entry_d + interval '1 day' END,
    1 + (random() * 9)::int, CASE WHEN o_id <= 2100 THEN 0.01 + round((random() * 300)::numeric, 2) ELSE round((random() * 9998)::numeric, 2) END, md5(n::text)
FROM orders, generate_series(1, o_ol_cnt) n;
CREATE INDEX ON customer (c_w_id, c_d_id, c_last);
CREATE INDEX ON orders (o_w_id, o_d_id, o_c_id, o_id);
